#include "core/model/release.h"

#include <algorithm>

#include "core/model/transitions.h"

namespace berth {

Task AfterRelease(const ClusterState& state, const TasksReleased& event, uint32_t index, Time now) {
  Task task = ReleasedTask(state.jobs().At(event.job).tasks[index], event.requeue, now);
  const auto to = std::find_if(event.moves_to.begin(), event.moves_to.end(),
                               [&](const Placement& place) { return place.task == index; });
  if (to != event.moves_to.end()) task = MovedTask(task, *to);
  const bool unreachable = state.nodes().At(task.node).status.state == NodeState::kLost;
  return unreachable && !event.requeue ? GoneTask(task, EndCause::kNodeLost, now) : task;
}

}  // namespace berth
