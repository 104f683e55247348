// The limit of tasks per node, whatever they request (NodeSpec::max_tasks). A node at its limit is
// not in FreeIndex's order, as if it took no tasks. It may have room after some of them are gone;
// planning ahead uses these functions.
#ifndef BERTH_CORE_MODEL_TASK_ROOM_H_
#define BERTH_CORE_MODEL_TASK_ROOM_H_

#include <algorithm>
#include <cstdint>

#include "core/model/cluster_state.h"

namespace berth {

// True if it takes tasks and is not in back-off, whether or not there is room.
inline bool MayHaveTasks(const ClusterState& state, const Node& node) {
  return TakesTasks(node.status) && node.status.backoff_until <= state.passed_time();
}

// TaskRoom after `gone` of its tasks are gone.
inline int64_t TaskRoomWithout(const Node& node, int64_t gone) {
  if (node.spec.max_tasks == 0) return TaskRoomIfEmpty(node);
  const auto there = static_cast<int64_t>(node.tasks.size() + node.nominated.size());
  return std::max<int64_t>(node.spec.max_tasks - there + gone, 0);
}

inline int64_t TaskRoomAfterRelease(const Node& node) {
  return TaskRoomWithout(node, node.leaving_tasks);
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_ROOM_H_
