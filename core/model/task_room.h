// How many tasks a node may have, whatever they ask for (NodeSpec::max_tasks). A node that has as
// many as it may is not in FreeIndex's order, as if it took none; but there may be room once some
// of them are gone: what looks ahead asks here.
#ifndef BERTH_CORE_MODEL_TASK_ROOM_H_
#define BERTH_CORE_MODEL_TASK_ROOM_H_

#include <algorithm>
#include <cstdint>

#include "core/model/cluster_state.h"

namespace berth {

// Takes tasks and does not back off, whether there is room or not.
inline bool MayHaveTasks(const ClusterState& state, const Node& node) {
  return TakesTasks(node.status) && node.status.backoff_until <= state.passed_time();
}

// TaskRoom once `gone` of its tasks are gone.
inline int64_t TaskRoomWithout(const Node& node, int64_t gone) {
  if (node.spec.max_tasks == 0) return TaskRoomIfEmpty(node);
  const auto there = static_cast<int64_t>(node.tasks.size() + node.nominated.size());
  return std::max<int64_t>(node.spec.max_tasks - there + gone, 0);
}

inline int64_t TaskRoomOnceReleased(const Node& node) {
  return TaskRoomWithout(node, node.leaving_tasks);
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_ROOM_H_
