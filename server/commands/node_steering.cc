#include "server/commands/node_steering.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/controllers/conditions.h"
#include "server/convert/node.h"
#include "server/convert/values.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"

namespace berth {
namespace {

constexpr size_t kNamedDevices = 16;  // in an error

bool NamesForDrain(const v1::DrainNodeRequest& request, const std::string& uuid) {
  const auto& names = request.devices();
  return std::find(names.begin(), names.end(), uuid) != names.end();
}

DeviceSet DrainedDevices(const Node& node, const v1::DrainNodeRequest& request) {
  DeviceSet devices;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (NamesForDrain(request, node.spec.devices[i].uuid)) devices.Add(i);
  }
  return devices;
}

absl::Status CheckDevicesOf(const Node& node, const v1::DrainNodeRequest& request) {
  std::vector<std::string> unknown;
  for (const std::string& uuid : request.devices()) {
    const auto& all = node.spec.devices;
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const Device& device) { return device.uuid == uuid; });
    if (!known && unknown.size() < kNamedDevices) unknown.push_back(Quoted(uuid));
  }
  if (unknown.empty()) return absl::OkStatus();
  Findings findings;
  const FieldPath root;
  findings.Invalid({root, "devices"}, absl::StrCat("node ", Quoted(node.spec.name), " has no ",
                                                   absl::StrJoin(unknown, ", ")));
  return findings.ToStatus();
}

Time DrainDeadlineOf(const v1::DrainNodeRequest& request, const Drain& drain, Time now) {
  if (request.has_deadline()) return now + DurationFrom(request.deadline());
  return drain.mode == DrainMode::kCheckpoint ? drain.begin + kDefaultCheckpointDrain
                                              : Time(absl::InfiniteFuture());
}

absl::StatusOr<Drain> DrainFor(const Node& node, const v1::DrainNodeRequest& request, Time now) {
  if (absl::Status status = CheckDevicesOf(node, request); !status.ok()) return status;
  const NodeStatus& before = node.status;
  if (request.devices_size() > 0 && before.draining) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", Quoted(node.spec.name),
                     " is drained as a whole; uncordon it before you drain some of its devices"));
  }
  Drain drain{.mode = DrainModeFrom(request.mode()), .begin = now};
  drain.devices = DrainedDevices(node, request);
  if (drain.mode == DrainMode::kNow && drain.devices.Empty()) return Drain{};
  const bool drains = before.draining || !before.drain.devices.Empty();
  if (drains && before.drain.mode == drain.mode && before.drain.devices == drain.devices) {
    drain.begin = before.drain.begin;
  }
  drain.deadline = DrainDeadlineOf(request, drain, now);
  return drain;
}

}  // namespace

NodeSteered CordonOf(const Node& node, const std::string& reason) {
  return {.id = node.id, .cordoned = true, .reason = reason, .drain = DrainOfDevices(node.status)};
}

absl::StatusOr<NodeSteered> DrainOf(const Node& node, const v1::DrainNodeRequest& request,
                                    Time now) {
  if (request.wait_for_jobs()) return CordonOf(node, request.reason());
  const absl::StatusOr<Drain> drain = DrainFor(node, request, now);
  if (!drain.ok()) return drain.status();
  const bool whole = drain->devices.Empty();
  // A cordon keeps its reason, which says who may lift it.
  const bool keeps = !whole && node.status.cordoned;
  return NodeSteered{.id = node.id,
                     .cordoned = whole || node.status.cordoned,
                     .draining = whole,
                     .reason = keeps ? node.status.reason : request.reason(),
                     .drain = *drain};
}

}  // namespace berth
