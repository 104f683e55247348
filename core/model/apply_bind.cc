// TasksBound: checks the planner's main decision again in full.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/check.h"
#include "core/model/apply_internal.h"
#include "core/model/rank_order.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

// A rigid group runs in one epoch: none of its tasks is bound beside one of an earlier epoch,
// except of 0, in which versions without epochs may have left a gang in part.
absl::Status CheckWhole(const Job& job, const TasksBound& event) {
  if (event.epoch == 0) return absl::OkStatus();
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.groups[g].replicas == 1 || MembershipOf(job.groups[g]) != GangMembership::kRigid)
      continue;
    const bool concerned =
        std::any_of(event.placements.begin(), event.placements.end(),
                    [&](const Placement& placement) { return GroupOf(job, placement.task) == g; });
    if (!concerned) continue;
    const uint32_t first = job.groups[g].first_task;
    for (uint32_t i = first; i < first + static_cast<uint32_t>(job.groups[g].replicas); ++i) {
      const Task& task = job.tasks[i];
      if (!Occupies(task.state) || Releasing(task)) continue;
      if (task.epoch == 0 || task.epoch == event.epoch) continue;
      return Refused(TaskName(job, i), " runs in epoch ", task.epoch,
                     " of a rigid gang: no task joins it in epoch ", event.epoch);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckJob(const ClusterState& state, const TasksBound& event) {
  const Job* job = state.jobs().Find(event.job);
  if (job == nullptr) return NotFound("no job ", event.job.value);
  if (event.placements.empty()) return Invalid(NameOf(*job), ": no tasks to be bound");
  const JobStatus& status = job->status;
  if (status.suspended || status.cancelled) {
    return Refused(NameOf(*job), " is ", status.cancelled ? "cancelled" : "suspended");
  }
  if (status.state != JobState::kPending && status.state != JobState::kBinding &&
      status.state != JobState::kRunning) {
    return Refused(NameOf(*job), " is ", NameOf(status.state), ": its tasks cannot be bound");
  }
  for (const Placement& placement : event.placements) {
    if (placement.task >= job->tasks.size()) {
      return NotFound(NameOf(*job), " has no task ", placement.task);
    }
  }
  return CheckWhole(*job, event);
}

// Checks the limits of the queue chain. The first start also needs open queues and room for one
// more running job.
absl::Status CheckQueues(const ClusterState& state, const Job& job, const TasksBound& event) {
  Resources request;
  for (const Placement& placement : event.placements) {
    if (Reserves(job.tasks[placement.task].state)) continue;  // already counted
    const Group& group = job.groups[GroupOf(job, placement.task)];
    request += state.interner().Shape(group.shape).resources;
  }
  if (!state.WithinLimits(job.queue, request)) {
    return Refused(NameOf(job), ": over a limit of ", NameOf(state.queues().At(job.queue)),
                   " or of a queue above it");
  }
  if (job.occupying > 0) return absl::OkStatus();
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    if (!queue.open) return Refused(NameOf(queue), " is closed: ", NameOf(job), " cannot start");
    const int64_t bound = queue.spec.max_running_jobs;
    if (bound > 0 && queue.running_jobs >= bound) {
      return Refused(NameOf(queue), " is at its limit of ", bound, " running jobs");
    }
    if (id == kRootQueue) return absl::OkStatus();
  }
}

// The given devices match the requested number of each kind, and are healthy.
absl::Status CheckDeviceKinds(const Node& node, const TaskShape& shape, const Placement& placement,
                              const Interner& interner) {
  DeviceSet missing = placement.devices;
  missing -= node.healthy;
  if (!missing.Empty()) return Refused(NameOf(node), " lacks these devices, or they are unhealthy");
  int counted = 0;
  for (const DeviceRequest& request : shape.devices) {
    const auto kind = interner.FindKind(request.kind);
    BERTH_CHECK(kind.has_value());
    int count = 0;
    for (const DeviceKindSet& set : node.kinds) {
      if (set.kind == *kind) count = Intersection(placement.devices, set.devices).Count();
    }
    if (count != request.count) {
      return Refused(NameOf(node), ": ", request.count, " devices of kind ", request.kind,
                     " requested, ", count, " given");
    }
    counted += count;
  }
  if (counted != placement.devices.Count()) {
    return Refused(NameOf(node), ": devices were given that were not requested");
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const Node& node, const ShapeEntry& entry, const Placement& placement,
                          const Interner& interner) {
  if (!HasRoom(node, TakenDevices(node), UseOf(node, entry, placement.devices))) {
    return Refused(NameOf(node), ": a device is in use or reserved by another task");
  }
  return CheckDeviceKinds(node, entry.shape, placement, interner);
}

absl::Status CheckRoom(const Node& node, const ShapeEntry& entry, const Interner& interner) {
  const Resources free = FreeOf(node);
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    if (entry.least.amount[i] <= free.amount[i]) continue;
    const ResourceKind kind{static_cast<uint8_t>(i)};
    return Refused(NameOf(node), ": ", interner.KindName(kind), " requested ",
                   AmountText(entry.least[kind], UnitOf(kind)), ", free ",
                   AmountText(free[kind], UnitOf(kind)));
  }
  return absl::OkStatus();
}

absl::Status CheckPlacement(const ClusterState& state, const Job& job, const Placement& placement,
                            Time now) {
  const Task& task = job.tasks[placement.task];
  const uint32_t group = GroupOf(job, placement.task);
  if (!Waits(task.state)) {
    return Refused(TaskName(job, placement.task), " is ", NameOf(task.state),
                   " and cannot be bound");
  }
  if (!GroupOpen(job, group)) {
    return Refused(TaskName(job, placement.task), ": its group waits for another");
  }
  const Node* node = state.nodes().Find(placement.node);
  if (node == nullptr) return NotFound("no node ", placement.node.value);
  if (!TakesTasks(node->status) || node->status.backoff_until > now) {
    return Refused(NameOf(*node), " takes no tasks now");
  }
  if (TaskRoom(*node) == 0) return Refused(NameOf(*node), " is at its limit of tasks");
  const ShapeEntry& entry = state.interner().Shape(job.groups[group].shape);
  auto status = CheckDevices(*node, entry, placement, state.interner());
  return status.ok() ? CheckRoom(*node, entry, state.interner()) : status;
}

// Binds one task after the other, so that each check includes the ones before. The first failure
// undoes all.
absl::Status BindAll(ClusterState& state, const TasksBound& event, Time now) {
  StateEditor tentative(state, EditMode::kTentative);
  const Job& job = state.jobs().At(event.job);
  std::vector<std::pair<TaskKey, Task>> before;
  before.reserve(event.placements.size());
  std::vector<bool> claimed;
  std::vector<FormerPlace> former;
  former.reserve(event.placements.size());
  for (const Placement& placement : event.placements) {
    claimed.push_back(job.tasks[placement.task].claimed);
    former.push_back(FormerOf(job.tasks[placement.task]));
  }
  for (const Placement& placement : event.placements) {  // nominations do not block their own tasks
    const TaskKey key{event.job, placement.task};
    const Task& task = job.tasks[placement.task];
    if (!Reserves(task.state)) continue;
    before.emplace_back(key, tentative.SetTask(key, UnnominatedTask(task, now)));
  }
  const auto ranks = RanksFor(state, job, event.gang, event.epoch, event.placements, former);
  for (size_t i = 0; i < event.placements.size(); ++i) {
    const Placement& placement = event.placements[i];
    auto status = CheckPlacement(state, job, placement, now);
    if (!status.ok()) {
      for (; !before.empty(); before.pop_back()) {
        tentative.SetTask(before.back().first, before.back().second);
      }
      return status;
    }
    const TaskKey key{event.job, placement.task};
    Task bound = RankedTask(BoundTask(job.tasks[placement.task], placement, now), ranks[i]);
    bound.claimed = claimed[i];
    before.emplace_back(key, tentative.SetTask(key, bound));
  }
  return absl::OkStatus();
}

// ---- Binds whose edits are in place already, in the planner's transaction

// Nothing was released since the state before, so limits that hold now held at every step.
absl::Status CheckQueuesStand(const ClusterState& state, const Job& job, const TasksBound& event) {
  Resources request;
  for (const Placement& placement : event.placements) {
    request += state.interner().Shape(job.groups[GroupOf(job, placement.task)].shape).resources;
  }
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    for (size_t i = 0; i < state.interner().kind_count(); ++i) {
      if (request.amount[i] > 0 && queue.allocated.amount[i] > queue.limit.amount[i]) {
        return Refused(NameOf(job), ": over a limit of ", NameOf(queue));
      }
    }
    const int64_t bound = queue.spec.max_running_jobs;
    if (event.gang && (!queue.open || (bound > 0 && queue.running_jobs > bound))) {
      return Refused(NameOf(queue), " is closed, or at its limit of running jobs");
    }
    if (id == kRootQueue) return absl::OkStatus();
  }
}

absl::Status CheckPlacementStands(const ClusterState& state, const Job& job,
                                  const Placement& placement, Time now) {
  const Task& task = job.tasks[placement.task];
  const uint32_t group = GroupOf(job, placement.task);
  if (task.state != TaskState::kBound || task.node != placement.node || task.since != now ||
      !(task.devices == placement.devices) || !GroupOpen(job, group)) {
    return Refused(TaskName(job, placement.task), " is not bound there");
  }
  const Node& node = state.nodes().At(placement.node);
  if (!TakesTasks(node.status) || node.status.backoff_until > now) {
    return Refused(NameOf(node), " takes no tasks now");
  }
  const auto there = static_cast<int64_t>(node.tasks.size() + node.nominated.size());
  if (there > TaskRoomIfEmpty(node)) return Refused(NameOf(node), " is above its limit of tasks");
  const ShapeEntry& entry = state.interner().Shape(job.groups[group].shape);
  const DeviceUse use = UseOf(node, entry, placement.devices);
  if (!HasRoom(node, node.devices_used - use + ClaimedDevices(node), use)) {
    return Refused(NameOf(node), ": a device is reserved by another task");
  }
  auto status = CheckDeviceKinds(node, entry.shape, placement, state.interner());
  if (!status.ok()) return status;
  Resources left = node.capacity - node.allocated - node.reserved;
  for (const DeviceKindSet& kind : node.kinds) left[kind.kind] = 0;  // counted individually
  for (size_t i = 0; i < state.interner().kind_count(); ++i) {
    if (entry.resources.amount[i] <= 0 || left.amount[i] >= 0) continue;
    return Refused(NameOf(node), ": more is given than it has");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TasksBound& event, Time now) {
  if (auto status = CheckJob(state, event); !status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  if (event.epoch != 0 && event.epoch != job.status.epoch + 1) {
    return Refused(NameOf(job), " is in epoch ", job.status.epoch, ": epoch ", event.epoch,
                   " is not the next");
  }
  if (auto status = CheckQueues(state, job, event); !status.ok()) return status;
  if (auto status = BindAll(state, event, now); !status.ok()) return status;
  StateEditor editor(state);
  for (const Placement& placement : event.placements) {
    editor.AdoptTask({event.job, placement.task});
    editor.SetTaskMessage({event.job, placement.task}, "");
  }
  editor.WakeForAffinity(event.job);
  if (event.gang || event.epoch > 0) {
    editor.SetGangStart(event.job, AfterBind(job.status, event.gang, event.epoch, now));
  }
  return absl::OkStatus();
}

}  // namespace berth::apply_internal

namespace berth {

absl::Status CheckBound(const ClusterState& state, const TasksBound& event, Time now) {
  if (auto status = apply_internal::CheckJob(state, event); !status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  if (auto status = apply_internal::CheckQueuesStand(state, job, event); !status.ok()) {
    return status;
  }
  for (const Placement& placement : event.placements) {
    auto status = apply_internal::CheckPlacementStands(state, job, placement, now);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void AdoptBound(StateEditor& editor, const TasksBound& event) {
  for (const Placement& placement : event.placements) {
    const TaskKey key{event.job, placement.task};
    editor.MarkTask(key);
    editor.SetTaskMessage(key, "");
  }
  if (event.gang || event.epoch > 0) editor.AdoptGangStart(event.job, event.gang);
  editor.AdoptTimers(event.job);
  editor.WakeForAffinity(event.job);
}

}  // namespace berth
