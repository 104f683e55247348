#include "core/engine/place/leaving.h"

#include <algorithm>

namespace berth {

void LetGoOn(Cycle& cycle, const std::vector<NodeId>& nodes, JobId own) {
  const ClusterState& state = cycle.state();
  std::vector<TaskKey> gone;  // a node's list changes with each removal
  for (NodeId id : nodes) {
    const Node& node = state.nodes().At(id);
    if (!AnyLeaves(node)) continue;
    for (TaskKey key : node.tasks) {
      if (GivesRoom(state.jobs().At(key.job).tasks[key.task]) && key.job != own) {
        gone.push_back(key);
      }
    }
  }
  std::sort(gone.begin(), gone.end());
  cycle.CountWork(gone.size());
  for (TaskKey key : gone) {
    if (BeingFrozen(state.jobs().At(key.job).tasks[key.task])) {
      cycle.transaction().Freeze(key.job, {&key.task, 1});
    } else {
      cycle.transaction().LetGo(key);
    }
  }
}

std::vector<QueueUse> LeavingOfQueues(const ClusterState& state, QueueId leaf) {
  std::vector<QueueUse> leaving;
  for (QueueId id = leaf;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    leaving.push_back({.all = queue.leaving,
                       .nonpreemptible = queue.nonpreemptible_leaving,
                       .running_jobs = queue.leaving_jobs});
    if (id == kRootQueue) return leaving;
  }
}

}  // namespace berth
