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
  if (!gave_back) return AmountsOf(shape, UseOf(node, shape, task.devices));
  return HeldBy(shape, UseOf(node, shape, DevicesHeld(task)), true);
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
  const GroupTally tally = TallyOf(beneficiary);
  if (tally.Nominated() > 0) return true;
  return tally.In(TaskState::kReleasing) > 0 &&
         std::any_of(beneficiary.tasks.begin(), beneficiary.tasks.end(),
                     [](const Task& task) { return task.moves; });
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

Duration FreezeTimeout(const Job& job) {
  return job.checkpoints_devices ? kCheckpointTimeout : kFreezeTimeout;
}

bool MayLend(const Job& job, const ShapeEntry& shape, const Task& task) {
  return job.checkpoints_devices && !task.devices.Empty() && shape.share == 0;
}

bool MayLend(const ClusterState& state, const Job& job, uint32_t task) {
  const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, task)].shape);
  return MayLend(job, shape, job.tasks[task]);
}

bool ResumeRoom::Take(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  const Node& node = state_.nodes().At(task.node);
  const Left whole{.cpu = UnusedCpu(node), .used = node.devices_used};
  Left& left = left_.try_emplace(task.node, whole).first->second;
  const int64_t cpu = CpuOf(state_, job, index);
  left.cpu -= cpu;
  const bool has_cpu = left.cpu >= 0 || cpu == 0;
  if (!task.devices_lent) return has_cpu;
  const ShapeEntry& shape = state_.interner().Shape(job.groups[GroupOf(job, index)].shape);
  const DeviceUse use = UseOf(node, shape, task.devices);
  const bool has_devices = HasRoom(node, left.used, use);
  left.used += use;
  return has_cpu && has_devices;
}

}  // namespace berth
