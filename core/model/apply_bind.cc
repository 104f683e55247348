// TasksBound: the planner's main decision, looked at again in full.
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
  return absl::OkStatus();
}

// Limits of the queue chain; the first start also needs open queues and room for one more running
// job.
absl::Status CheckQueues(const ClusterState& state, const Job& job, const TasksBound& event) {
  Resources request;
  for (const Placement& placement : event.placements) {
    if (Reserves(job.tasks[placement.task].state)) continue;  // counted already
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
      return Refused(NameOf(queue), " runs as many jobs as it may: ", bound);
    }
    if (id == kRootQueue) return absl::OkStatus();
  }
}

absl::Status CheckDevices(const Node& node, const TaskShape& shape, const Placement& placement,
                          const Interner& interner) {
  DeviceSet missing = placement.devices;
  missing -= node.healthy;
  if (!missing.Empty()) return Refused(NameOf(node), " does not have these devices, or not well");
  if (placement.devices.Overlaps(TakenDevices(node))) {
    return Refused(NameOf(node), ": a device is in use or kept for another task");
  }
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
                     " are asked for, ", count, " given");
    }
    counted += count;
  }
  if (counted != placement.devices.Count()) {
    return Refused(NameOf(node), ": devices are given that were not asked for");
  }
  return absl::OkStatus();
}

absl::Status CheckRoom(const Node& node, const ShapeEntry& entry, const Interner& interner) {
  const Resources free = FreeOf(node);
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    if (entry.resources.amount[i] <= free.amount[i]) continue;
    const ResourceKind kind{static_cast<uint8_t>(i)};
    return Refused(NameOf(node), ": ", interner.KindName(kind), " asked for ",
                   entry.resources[kind], ", free ", free[kind]);
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
  const ShapeEntry& entry = state.interner().Shape(job.groups[group].shape);
  auto status = CheckDevices(*node, entry.shape, placement, state.interner());
  return status.ok() ? CheckRoom(*node, entry, state.interner()) : status;
}

// Ranks for what is being bound. A gang is numbered from 0 on, in RankOrder. What
// joins one, or replaces a member, gets the lowest number that no attempt of the job has that still
// occupies a node: so ranks never repeat among them, and stay what they were when the gang grows.
//
//   gang of a-0 a-1 b-0 b-1     0 1 2 3
//   a-2 joins                   0 1 2 3, a-2 has 4
//   b-0 ends and is restarted   2 again
class FreeRanks {
 public:
  FreeRanks(const Job& job, bool gang) : taken_(job.tasks.size(), 0) {
    if (job.tasks.size() == 1) return;  // most jobs
    for (const Task& task : job.tasks) {
      // What is left of an earlier gang and on its way out is no member of a new one.
      if (!Occupies(task.state) || (gang && Releasing(task))) continue;
      if (task.rank < taken_.size()) taken_[task.rank] = 1;
    }
  }
  uint16_t Take() {
    while (taken_[next_] != 0) ++next_;
    return static_cast<uint16_t>(next_++);
  }

 private:
  static_assert(kMaxTasksPerJob <= 1 << 16);
  absl::InlinedVector<uint8_t, 64> taken_;  // by rank; there are as many as tasks
  size_t next_ = 0;
};

// Of each placement.
std::vector<uint16_t> RanksFor(const ClusterState& state, const Job& job, const TasksBound& event) {
  FreeRanks free(job, event.gang);
  std::vector<uint16_t> ranks(event.placements.size());
  if (!event.gang || event.placements.size() == 1) {
    for (uint16_t& rank : ranks) rank = free.Take();
    return ranks;
  }
  for (size_t i : RankOrder(state, job, event.placements)) ranks[i] = free.Take();
  return ranks;
}

// Binds one after the other, so that each sees what those before it took. Undone on the first that
// does not fit.
absl::Status BindAll(ClusterState& state, const TasksBound& event, Time now) {
  StateEditor tentative(state, EditMode::kTentative);
  const Job& job = state.jobs().At(event.job);
  std::vector<std::pair<TaskKey, Task>> before;
  before.reserve(event.placements.size());
  for (const Placement& placement : event.placements) {  // nominations do not bar their own tasks
    const TaskKey key{event.job, placement.task};
    const Task& task = job.tasks[placement.task];
    if (!Reserves(task.state)) continue;
    before.emplace_back(key, tentative.SetTask(key, UnnominatedTask(task, now)));
  }
  const std::vector<uint16_t> ranks = RanksFor(state, job, event);
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
    Task bound = BoundTask(job.tasks[placement.task], placement, now);
    bound.rank = ranks[i];
    before.emplace_back(key, tentative.SetTask(key, bound));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TasksBound& event, Time now) {
  if (auto status = CheckJob(state, event); !status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  if (auto status = CheckQueues(state, job, event); !status.ok()) return status;
  if (auto status = BindAll(state, event, now); !status.ok()) return status;
  StateEditor editor(state);
  for (const Placement& placement : event.placements) {
    editor.AdoptTask({event.job, placement.task});
    editor.SetTaskMessage({event.job, placement.task}, "");
  }
  if (event.gang) editor.SetGangStart(event.job, GangBound(job.status, now));
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
