// StateEditor: tasks, and the sums of their jobs and queues.
#include "core/base/check.h"
#include "core/model/state_editor_internal.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// What a task holds on a node, or reserves there.
struct Hold {
  bool any = false;
  NodeId node;
  DeviceSet devices;
  bool frozen = false;  // without its CPU
  bool operator==(const Hold&) const = default;
};
Hold OccupationOf(const Task& task) {
  if (!Occupies(task.state)) return {};
  return {.any = true, .node = task.node, .devices = DevicesHeld(task), .frozen = Frozen(task)};
}
Hold ReservationOf(const Task& task) {
  if (Reserves(task.state)) return {.any = true, .node = task.node, .devices = task.devices};
  if (!task.moves) return {};
  return {.any = true, .node = task.next_node, .devices = task.next_devices};
}

// True if it waits for what it lends on the node that it occupies.
bool WaitsForLent(const Task& task) { return task.pause == PauseState::kResuming; }

// True if the task is told to stop and its job loses the place for good.
bool Leaves(const Task& task) { return task.state == TaskState::kReleasing && !task.moves; }

// True if everything that the job holds is leaving.
bool JobLeaves(const Job& job) { return job.leaving > 0 && job.leaving == job.occupying; }

// True if it counts as use by its queue.
bool IsUse(TaskState state) { return Occupies(state) || Reserves(state); }

bool SameHolds(const Task& a, const Task& b) {
  return IsUse(a.state) == IsUse(b.state) &&
         (a.state == TaskState::kPending) == (b.state == TaskState::kPending) &&
         OccupationOf(a) == OccupationOf(b) && ReservationOf(a) == ReservationOf(b) &&
         WaitsForLent(a) == WaitsForLent(b);
}

}  // namespace

Task StateEditor::SetTask(TaskKey key, const Task& value) {
  Job& job = state_.jobs_.At(key.job);
  BERTH_CHECK(key.task < job.tasks.size());
  const uint32_t group = GroupOf(job, key.task);
  const Task old = job.tasks.Set(key.task, value);
  --job.tallies[group].count[static_cast<size_t>(TallyState(old))];
  ++job.tallies[group].count[static_cast<size_t>(TallyState(value))];
  if (old.state != value.state) {
    state_.tasks_by_state_[static_cast<size_t>(old.state)] -= Counts(job, old.state);
    state_.tasks_by_state_[static_cast<size_t>(value.state)] += Counts(job, value.state);
  }
  const bool same_holds = SameHolds(old, value);
  const bool was_leaving = GivesRoom(old);
  const bool is_leaving = GivesRoom(value);
  const bool left = JobLeaves(job);
  if (Releasing(old) != Releasing(value)) WakeForAffinity(key.job);
  const ShapeEntry& shape = state_.interner_.Shape(job.groups[group].shape);
  // What leaves a node must at all times be part of what is in use there.
  if (was_leaving) CountLeavingTask(job, old, shape, -1);
  if (was_leaving || is_leaving) CountLeaving(job, key, shape, old);
  if (old.claimed != value.claimed) CountClaimed(job, shape, value.claimed);
  if (!same_holds) MoveHolds(job, key, shape, old);
  if (is_leaving) CountLeavingTask(job, value, shape, 1);
  // MoveHolds updates the node's place in the index, but not if the task stays.
  if (is_leaving || (was_leaving && Occupies(value.state))) {
    ReindexNode(state_.nodes_.At(value.node));
  }
  if (JobLeaves(job) != left) CountLeavingJob(job, left);
  if (old.state != value.state) ListTask(job, key, old.state);
  if (WaitsForLent(old)) state_.resuming_.erase(key);
  if (WaitsForLent(value)) state_.resuming_.insert(key);
  AdoptTask(key);
  return old;
}

void StateEditor::DetachTask(TaskKey key) {
  const Job& job = state_.jobs_.At(key.job);
  const Task& task = job.tasks[key.task];
  const ShapeId shape = job.groups[GroupOf(job, key.task)].shape;
  BERTH_CHECK(!facts() && Occupies(task.state));
  const ShapeEntry& entry = state_.interner_.Shape(shape);
  if (GivesRoom(task)) CountLeavingTask(job, task, entry, -1);
  Vacate(task.node, key, entry, DevicesHeld(task), Frozen(task));
}

void StateEditor::ReattachTask(TaskKey key) {
  const Job& job = state_.jobs_.At(key.job);
  const Task& task = job.tasks[key.task];
  const ShapeId shape = job.groups[GroupOf(job, key.task)].shape;
  const ShapeEntry& entry = state_.interner_.Shape(shape);
  Occupy(task.node, key, entry, DevicesHeld(task), Frozen(task));
  if (!GivesRoom(task)) return;
  CountLeavingTask(job, task, entry, 1);
  ReindexNode(state_.nodes_.At(task.node));
}

void StateEditor::AdoptTask(TaskKey key) {
  Touch(key.job);
  if (facts()) MarkTask(key);
}

void StateEditor::MarkTask(TaskKey key) {
  state_.dirty_.tasks.push_back(key);
  state_.unsettled_.insert(key.job);
}

void StateEditor::SetMemberRank(TaskKey key, const MemberRank& rank) {
  Task& task = state_.jobs_.At(key.job).tasks.Changed(key.task);
  task = RankedTask(task, rank);
}

void StateEditor::Touch(JobId id) {
  if (touched_.empty() || touched_.back() != id) touched_.push_back(id);
}

void StateEditor::MarkJob(JobId id) {
  if (!facts()) return;
  state_.dirty_.jobs.push_back(id);
  state_.unsettled_.insert(id);
}

void StateEditor::WakeForQueue(QueueId leaf) {
  if (!facts()) return;
  for (QueueId id = leaf;; id = state_.queues_.At(id).spec.parent) {
    state_.pending_.ReopenQueue(id);
    if (id == kRootQueue) return;
  }
}

// The task is, or was, being released: updates the sums of its job and queues.
void StateEditor::CountLeaving(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old) {
  const Task& task = job.tasks[key.task];
  QueueChange change;
  change.leaving = (Leaves(task) ? 1 : 0) - (Leaves(old) ? 1 : 0);
  change.nonpreemptible_leaving = PreemptibleTask(job, key.task) ? 0 : change.leaving;
  job.leaving += change.leaving;
  if (change.leaving != 0) ChangeQueues(job.queue, shape.resources, change);
}

void StateEditor::CountClaimed(const Job& job, const ShapeEntry& shape, bool claimed) {
  ChangeQueues(job.queue, shape.resources, {.claimed = claimed ? 1 : -1});
}

void StateEditor::CountLeavingJob(Job& job, bool left_before) {
  ChangeQueues(job.queue, {}, {.leaving_jobs = left_before ? -1 : 1});
}

// Updates all sums when the task's request or what it holds changes.
void StateEditor::MoveHolds(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old) {
  const Task& task = job.tasks[key.task];
  const Hold occupied = OccupationOf(old), occupies = OccupationOf(task);
  const Hold reserved = ReservationOf(old), reserves = ReservationOf(task);
  const bool held_any = job.occupying > 0;
  if (reserved.any && !(reserved == reserves))
    Unreserve(reserved.node, key, shape, reserved.devices);
  if (WaitsForLent(old)) ReserveLent(old, shape, -1);
  if (occupied.any && !(occupied == occupies)) {
    Vacate(occupied.node, key, shape, occupied.devices, occupied.frozen);
  }
  if (occupies.any && !(occupied == occupies)) {
    Occupy(occupies.node, key, shape, occupies.devices, occupies.frozen);
  }
  if (WaitsForLent(task)) ReserveLent(task, shape, 1);
  if (reserves.any && !(reserved == reserves)) Reserve(reserves.node, key, shape, reserves.devices);
  if (old.devices_lent) CountLent(old.node);
  if (task.devices_lent) CountLent(task.node);
  job.occupying += (occupies.any ? 1 : 0) - (occupied.any ? 1 : 0);

  QueueChange change;
  change.allocated = (IsUse(task.state) ? 1 : 0) - (IsUse(old.state) ? 1 : 0);
  change.nonpreemptible = PreemptibleTask(job, key.task) ? 0 : change.allocated;
  change.nominated = (Reserves(task.state) ? 1 : 0) - (Reserves(old.state) ? 1 : 0);
  if (!Ended(job.status.state)) {
    const auto waits = [](TaskState state) { return state == TaskState::kPending ? 1 : 0; };
    change.pending = waits(task.state) - waits(old.state);
    if (job.wanting) change.wanted = change.pending;
  }
  change.running_jobs = (job.occupying > 0 ? 1 : 0) - (held_any ? 1 : 0);
  if (change.running_jobs != 0) ListOccupying(job, job.occupying > 0);
  ChangeQueues(job.queue, shape.resources, change);
  ChangeUser(job, shape.resources, change.allocated);
  WakeForAffinity(job.id);
  if (change.allocated < 0 || change.running_jobs < 0) WakeForQueue(job.queue);
}

// Updates the sets of tasks and jobs in states that planning searches.
void StateEditor::ListTask(const Job& job, TaskKey key, TaskState old) {
  const TaskState now = job.tasks[key.task].state;
  if (old == TaskState::kReleasing) state_.releasing_.erase(key);
  if (now == TaskState::kReleasing) state_.releasing_.insert(key);
  if (!Reserves(old) && !Reserves(now)) return;
  const GroupTally tally = TallyOf(job);
  if (tally.Nominated() > 0) {
    state_.nominated_jobs_.insert(job.id);
  } else {
    state_.nominated_jobs_.erase(job.id);
  }
}

void StateEditor::ListOccupying(Job& job, bool list) {
  Queue& queue = state_.queues_.At(job.queue);
  const Time end = PlannedEnd(job);
  state_.affinity_.List(job, list);
  if (list) {
    queue.occupying_jobs.insert(HolderKeyOf(job));
    if (HasGroupPriorities(job)) queue.graded_jobs.insert(HolderKeyOf(job));
    if (AnyPreemptible(job)) queue.giving_jobs.insert(HolderKeyOf(job));
    ListEnd(job, absl::InfiniteFuture(), end);
  } else {
    queue.occupying_jobs.erase(HolderKeyOf(job));
    queue.graded_jobs.erase(HolderKeyOf(job));
    queue.giving_jobs.erase(HolderKeyOf(job));
    ListEnd(job, end, absl::InfiniteFuture());
  }
}

void StateEditor::ListEnd(const Job& job, Time before, Time now) {
  if (before == now) return;
  if (before != absl::InfiniteFuture()) state_.planned_ends_.erase({before, job.id});
  if (now != absl::InfiniteFuture()) state_.planned_ends_.insert({now, job.id});
}

void StateEditor::ChangeUser(const Job& job, const Resources& request, int sign) {
  Queue& queue = state_.queues_.At(job.queue);
  if (sign == 0 || queue.spec.user_fairness == UserFairness::kNone) return;
  Resources& sum = queue.user_allocated[job.user];
  if (sign > 0) sum += request;
  if (sign < 0) sum -= request;
  if (sum.IsZero()) queue.user_allocated.erase(job.user);
}

void StateEditor::SetTaskMessage(TaskKey key, absl::string_view message) {
  if (message.empty()) {
    if (state_.task_messages_.erase(key) == 0) return;
  } else {
    state_.task_messages_[key] = std::string(message);
  }
  if (facts()) state_.dirty_.tasks.push_back(key);
}

}  // namespace berth
