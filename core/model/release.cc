#include "core/model/release.h"

#include <algorithm>

#include "core/model/transitions.h"

namespace berth {

Task AfterRelease(const ClusterState& state, const TasksReleased& event, uint32_t index, Time now) {
  const Task& before = state.jobs().At(event.job).tasks[index];
  const bool unreachable = state.nodes().At(before.node).status.state == NodeState::kLost;
  return AfterRelease(before, event, index, unreachable, now);
}

Task AfterRelease(const Task& before, const TasksReleased& event, uint32_t index, bool unreachable,
                  Time now) {
  Task task = ReleasedTask(before, event.requeue, event.reason, now);
  const auto to = std::find_if(event.moves_to.begin(), event.moves_to.end(),
                               [&](const Placement& place) { return place.task == index; });
  // A task that rightfully makes way also loses the claim, wherever it moves; a task moved to make
  // room does not.
  const bool claimed = before.claimed && event.reason == ReleaseReason::kConsolidated;
  if (to != event.moves_to.end()) task = MovedTask(task, claimed, *to);
  return unreachable && !event.requeue ? GoneTask(task, EndCause::kNodeLost, now) : task;
}

}  // namespace berth
