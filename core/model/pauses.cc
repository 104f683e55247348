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

bool CanYield(const ClusterState& state, const Job& job) {
  const JobStatus& status = job.status;
  if (job.preempt_mode != PreemptMode::kPause) return false;
  if (status.state != JobState::kRunning || status.suspended) return false;
  bool some_use_cpu = false;
  for (const Task& task : job.tasks) {
    if (!Occupies(task.state)) continue;
    // Those that run beside frozen ones are about to be frozen, or to go on.
    if (task.state != TaskState::kRunning || Frozen(task) != IsPaused(status)) return false;
    if (task.claimed) return false;  // what was reclaimed must pass on: see Decide
    some_use_cpu |= task.pause != PauseState::kPaused;
  }
  return some_use_cpu && NodeWithoutFreezer(state, job) == nullptr;
}

bool AwaitsPlaces(const Job& beneficiary) {
  if (Ended(beneficiary.status.state)) return false;
  return std::any_of(beneficiary.tasks.begin(), beneficiary.tasks.end(), [](const Task& task) {
    return task.state == TaskState::kNominated || task.moves;
  });
}

bool AwaitsCpu(const Job& job) {
  return IsPaused(job.status) && std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& t) {
           return t.pause == PauseState::kResuming;
         });
}

bool TakesTurns(const ClusterState& state, const Job& job) {
  const bool may = job.preempt_mode == PreemptMode::kPause && job.preemptible;
  if (!may || state.queues().At(job.queue).spec.slice <= absl::ZeroDuration()) return false;
  return static_cast<size_t>(job.min_available) == job.tasks.size();
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
