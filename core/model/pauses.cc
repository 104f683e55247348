#include "core/model/pauses.h"

#include <algorithm>

namespace berth {

const Node* NodeWithoutFreezer(const ClusterState& state, const Job& job) {
  for (const Task& task : job.tasks) {
    if (!Occupies(task.state)) continue;
    const Node& node = state.nodes().At(task.node);
    if (!node.spec.freezes) return &node;
  }
  return nullptr;
}

int64_t UnusedCpu(const Node& node) { return node.capacity[kCpu] - node.allocated[kCpu]; }

int64_t CpuOf(const ClusterState& state, const Job& job, uint32_t task) {
  return state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources[kCpu];
}

Resources FreedBy(const Node& node, const ShapeEntry& shape, const Task& task) {
  const bool gave_back = Frozen(task) && task.pause != PauseState::kResuming;
  return HeldBy(shape, UseOf(node, shape, task.devices), gave_back);
}

bool AwaitsPlaces(const Job& beneficiary) {
  if (Ended(beneficiary.status.state)) return false;
  return std::any_of(beneficiary.tasks.begin(), beneficiary.tasks.end(), [](const Task& task) {
    return task.state == TaskState::kNominated || task.moves;
  });
}

bool HasCpuToResume(const ClusterState& state, const Job& job, const std::vector<uint32_t>& tasks,
                    uint32_t task) {
  const NodeId node = job.tasks[task].node;
  int64_t wanted = 0;
  for (const uint32_t other : tasks) {
    const bool there = Frozen(job.tasks[other]) && job.tasks[other].node == node;
    if (there) wanted += CpuOf(state, job, other);
  }
  return wanted == 0 || wanted <= UnusedCpu(state.nodes().At(node));
}

}  // namespace berth
