#include "core/model/apply.h"

#include <algorithm>
#include <array>
#include <variant>

#include "core/model/apply_internal.h"

namespace berth {
namespace apply_internal {

std::string NameOf(const Job& job) {
  return absl::StrCat("job ", job.name, " (", job.id.value, ")");
}
std::string NameOf(const Node& node) {
  return absl::StrCat("node ", node.spec.name, " (", node.id.value, ")");
}
std::string NameOf(const Queue& queue) {
  return absl::StrCat("queue ", queue.spec.name, " (", queue.id.value, ")");
}

std::string NameOf(const HyperNode& domain) {
  return absl::StrCat("HyperNode ", domain.spec.name, " (", domain.id.value, ")");
}

std::string TaskName(const Job& job, uint32_t task) {
  const Group& group = job.groups[GroupOf(job, task)];
  return absl::StrCat("task ", group.name, "-", task - group.first_task, " of ", NameOf(job));
}

const char* NameOf(TaskState state) {
  static constexpr std::array<const char*, kTaskStates> kNames = {
      "Pending", "Nominated", "Bound", "Prepared",  "Starting",
      "Running", "Releasing", "Lost",  "Succeeded", "Failed"};
  return kNames[static_cast<size_t>(state)];
}

const char* NameOf(JobState state) {
  static constexpr std::array<const char*, kJobStates> kNames = {
      "Pending",   "Held",       "Binding",   "Running", "Restarting",
      "Suspended", "Completing", "Succeeded", "Failed",  "Cancelled"};
  return kNames[static_cast<size_t>(state)];
}

absl::Status CheckAmounts(const std::vector<NamedAmount>& amounts, const std::string& whose) {
  for (size_t i = 0; i < amounts.size(); ++i) {
    const NamedAmount& entry = amounts[i];
    if (entry.name.empty()) return Invalid(whose, ": a resource without a name");
    if (i > 0 && amounts[i - 1].name >= entry.name) {
      return Invalid(whose, ": resources must be sorted by name, each once (", entry.name, ")");
    }
    if (entry.amount < 0 || entry.amount > kMaxAmount) {
      return Invalid(whose, ": ", entry.name, " must be 0 to ", kMaxAmount, ", not ", entry.amount);
    }
  }
  return absl::OkStatus();
}

}  // namespace apply_internal

absl::Status Apply(ClusterState& state, const Event& event) {
  return std::visit(
      [&](const auto& body) { return apply_internal::ApplyBody(state, body, event.time); },
      event.body);
}

}  // namespace berth
