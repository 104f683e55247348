#include "server/controllers/conditions.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/validation/text.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr int kMaxConditions = 64;
constexpr size_t kMaxMessageBytes = 256;
constexpr char kByAgent[] = "agent: ";

}  // namespace

absl::Status ValidateConditions(const v1::NodeConditions& conditions) {
  if (conditions.conditions_size() > kMaxConditions)
    return absl::InvalidArgumentError("more than 64 conditions");
  for (const v1::NodeCondition& condition : conditions.conditions()) {
    if (!IsDnsLabel(condition.name()))
      return absl::InvalidArgumentError(
          absl::StrCat("invalid condition name ", Quoted(condition.name())));
    if (condition.message().size() > kMaxMessageBytes)
      return absl::InvalidArgumentError(
          absl::StrCat("the message of condition ", condition.name(), " is too long"));
  }
  return absl::OkStatus();
}

Drain DrainOfDevices(const NodeStatus& status) {
  return status.drain.devices.Empty() ? Drain{} : status.drain;
}

std::optional<NodeSteered> SteeringFor(const Node& node, const v1::NodeConditions& conditions) {
  const NodeStatus& now = node.status;
  const bool by_agent = absl::StartsWith(now.reason, kByAgent);
  const bool for_refusals = absl::StartsWith(now.reason, kCordonedForRefusals);
  if (now.cordoned && !by_agent && !for_refusals) return std::nullopt;
  NodeSteered wish{.id = node.id, .drain = DrainOfDevices(now)};
  for (const v1::NodeCondition& condition : conditions.conditions()) {
    const bool drain = condition.effect() == v1::NodeCondition::DRAIN;
    const bool cordon = drain || condition.effect() == v1::NodeCondition::CORDON;
    if (!cordon || (wish.cordoned && !(drain && !wish.draining))) continue;
    wish.cordoned = true;
    wish.draining = drain;
    wish.reason = absl::StrCat(kByAgent, condition.name(), ": ", Visible(condition.message()));
  }
  if (for_refusals && !wish.cordoned) return std::nullopt;  // not the agent's to revert
  if (wish.cordoned == now.cordoned && wish.draining == now.draining &&
      (!wish.cordoned || wish.reason == now.reason)) {
    return std::nullopt;
  }
  return wish;
}

}  // namespace berth
