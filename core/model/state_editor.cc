// Tasks and jobs. Queues and nodes: state_editor_cluster.cc; demand: state_editor_demand.cc;
// loading: state_load.cc.
#include "core/model/state_editor.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/model/job_timer.h"
#include "core/model/line.h"
#include "core/model/queue_change.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// The part of a job that planning reads and writes: its tasks, and its status up to `bound`.
constexpr size_t kPlannedBytes = 384;
constexpr size_t kAhead = 8;  // jobs

GangStart StartOf(const JobStatus& status) {
  return {.state = status.state, .starts = status.starts, .bound = status.bound};
}

// Dependencies matter until the first start.
bool WaitsForDependencies(const GangStart& status) {
  return status.starts == 0 && !Ended(status.state);
}

// True if the task counts in the cluster's tally by state. Pending tasks of ended jobs do not.
bool Counts(const Job& job, TaskState state) { return !Waits(state) || !Ended(job.status.state); }

// What a task holds on a node, or reserves there.
struct Hold {
  bool any = false;
  NodeId node;
  DeviceSet devices;
  bool operator==(const Hold&) const = default;
};
Hold OccupationOf(const Task& task) {
  if (!Occupies(task.state)) return {};
  return {.any = true, .node = task.node, .devices = task.devices};
}
Hold ReservationOf(const Task& task) {
  if (Reserves(task.state)) return {.any = true, .node = task.node, .devices = task.devices};
  if (!task.moves) return {};
  return {.any = true, .node = task.next_node, .devices = task.next_devices};
}

// True if the task is told to stop and its job loses the place for good.
bool Leaves(const Task& task) { return task.state == TaskState::kReleasing && !task.moves; }

// True if everything that the job holds is leaving.
bool JobLeaves(const Job& job) { return job.leaving > 0 && job.leaving == job.occupying; }

// True if it counts as use by its queue.
bool IsUse(TaskState state) { return Occupies(state) || Reserves(state); }

bool SameHolds(const Task& a, const Task& b) {
  return IsUse(a.state) == IsUse(b.state) &&
         (a.state == TaskState::kPending) == (b.state == TaskState::kPending) &&
         OccupationOf(a) == OccupationOf(b) && ReservationOf(a) == ReservationOf(b);
}

void FillJob(JobId id, const JobSpec& spec, Time submit, Job& job) {
  job.id = id;
  job.name = spec.name;
  job.queue = spec.queue;
  job.priority = spec.priority;
  job.min_available = spec.min_available;
  job.max_retries = spec.max_retries;
  job.on_node_loss = spec.on_node_loss;
  job.preemptible = spec.preemptible;
  job.preempts = spec.preempts;
  job.strategy = spec.strategy;
  job.device_strategy = spec.device_strategy;
  job.user = spec.user;
  job.checkpoint_interval = spec.checkpoint_interval;
  job.deadline = spec.deadline;
  job.walltime = spec.walltime;
  job.retry_backoff = spec.retry_backoff;
  job.prepare_timeout = spec.prepare_timeout;
  job.kill_grace = spec.kill_grace;
  job.ttl_after_finished = spec.ttl_after_finished;
  job.submit = submit;
  job.start_after = spec.start_after;
  job.dependencies = spec.dependencies;
  job.labels = spec.labels;
  job.status.suspended = spec.suspended;
}

}  // namespace

StateEditor::StateEditor(ClusterState& state, EditMode mode) : state_(state), mode_(mode) {}

StateEditor::~StateEditor() { Sync(); }

void StateEditor::Sync() {
  for (JobId id : touched_) {
    Job* job = state_.jobs_.Find(id);
    if (job == nullptr) continue;
    RefreshPending(*job);
    if (!facts()) continue;
    RefreshTimer(*job);
    RefreshShort(*job);
  }
  touched_.clear();
  if (facts()) state_.pending_.DropEmpty();
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

void StateEditor::WakeForNode(NodeId id) {
  if (facts()) state_.freed_nodes_.push_back(id);
}

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
  const bool was_leaving = old.state == TaskState::kReleasing;
  const bool is_leaving = value.state == TaskState::kReleasing;
  const bool left = JobLeaves(job);
  if (Releasing(old) != Releasing(value)) WakeForAffinity(key.job);
  const ShapeEntry& shape = state_.interner_.Shape(job.groups[group].shape);
  // What leaves a node must at all times be part of what is in use there.
  if (was_leaving) CountLeavingTask(old, shape, -1);
  if (was_leaving || is_leaving) CountLeaving(job, key, shape, old);
  if (old.claimed != value.claimed) CountClaimed(job, shape, value.claimed);
  if (!same_holds) MoveHolds(job, key, shape, old);
  if (is_leaving) CountLeavingTask(value, shape, 1);
  // MoveHolds updates the node's place in the index, but not if the task stays.
  if (is_leaving || (was_leaving && Occupies(value.state))) {
    ReindexNode(state_.nodes_.At(value.node));
  }
  if (JobLeaves(job) != left) CountLeavingJob(job, left);
  if (old.state != value.state) ListTask(job, key, old.state);
  AdoptTask(key);
  return old;
}

void StateEditor::DetachTask(TaskKey key) {
  const Job& job = state_.jobs_.At(key.job);
  const Task& task = job.tasks[key.task];
  const ShapeId shape = job.groups[GroupOf(job, key.task)].shape;
  BERTH_CHECK(!facts() && Occupies(task.state));
  const ShapeEntry& entry = state_.interner_.Shape(shape);
  if (task.state == TaskState::kReleasing) CountLeavingTask(task, entry, -1);
  Vacate(task.node, key, entry, task.devices);
}

void StateEditor::ReattachTask(TaskKey key) {
  const Job& job = state_.jobs_.At(key.job);
  const Task& task = job.tasks[key.task];
  const ShapeId shape = job.groups[GroupOf(job, key.task)].shape;
  const ShapeEntry& entry = state_.interner_.Shape(shape);
  Occupy(task.node, key, entry, task.devices);
  if (task.state != TaskState::kReleasing) return;
  CountLeavingTask(task, entry, 1);
  ReindexNode(state_.nodes_.At(task.node));
}

void StateEditor::AdoptTask(TaskKey key) {
  Touch(key.job);
  if (facts()) MarkTask(key);
}

void StateEditor::AdoptGangStart(JobId id) {
  const Job& job = state_.jobs_.At(id);
  if (job.status.starts == 1) {
    for (const JobDependency& dependency : job.dependencies) MayForget(dependency.job);
  }
  MarkJob(id);
}

void StateEditor::AdoptTimers(JobId id) {
  Job& job = state_.jobs_.At(id);
  RefreshTimer(job);
  RefreshShort(job);
}

void StateEditor::MarkTask(TaskKey key) {
  state_.dirty_.tasks.push_back(key);
  state_.unsettled_.insert(key.job);
}

// The task is, or was, being released: updates what its node will have without it. The task
// occupies that; the caller updates the node's place in the index.
void StateEditor::CountLeavingTask(const Task& task, const ShapeEntry& shape, int sign) {
  Node& node = state_.nodes_.At(task.node);
  node.leaving_tasks += sign;
  const DeviceUse use = UseOf(node, shape, task.devices);
  if (sign > 0) {
    node.leaving += AmountsOf(shape, use);
    node.devices_leaving += use;
  } else {
    node.leaving -= AmountsOf(shape, use);
    node.devices_leaving -= use;
  }
}

// The same for its job and queues.
void StateEditor::CountLeaving(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old) {
  const Task& task = job.tasks[key.task];
  QueueChange change{.request = &shape.resources};
  change.leaving = (Leaves(task) ? 1 : 0) - (Leaves(old) ? 1 : 0);
  change.nonpreemptible_leaving = PreemptibleTask(job, key.task) ? 0 : change.leaving;
  job.leaving += change.leaving;
  if (change.leaving != 0) ChangeQueues(job.queue, change);
}

void StateEditor::CountClaimed(const Job& job, const ShapeEntry& shape, bool claimed) {
  QueueChange change;
  change.request = &shape.resources;
  change.claimed = claimed ? 1 : -1;
  ChangeQueues(job.queue, change);
}

void StateEditor::CountLeavingJob(Job& job, bool left_before) {
  QueueChange change;
  change.leaving_jobs = left_before ? -1 : 1;
  ChangeQueues(job.queue, change);
}

// Updates all sums when the task's request or what it holds changes.
void StateEditor::MoveHolds(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old) {
  const Task& task = job.tasks[key.task];
  const Hold occupied = OccupationOf(old), occupies = OccupationOf(task);
  const Hold reserved = ReservationOf(old), reserves = ReservationOf(task);
  const bool held_any = job.occupying > 0;
  if (reserved.any && !(reserved == reserves))
    Unreserve(reserved.node, key, shape, reserved.devices);
  if (occupied.any && !(occupied == occupies)) Vacate(occupied.node, key, shape, occupied.devices);
  if (occupies.any && !(occupied == occupies)) Occupy(occupies.node, key, shape, occupies.devices);
  if (reserves.any && !(reserved == reserves)) Reserve(reserves.node, key, shape, reserves.devices);
  job.occupying += (occupies.any ? 1 : 0) - (occupied.any ? 1 : 0);

  QueueChange change{.request = &shape.resources};
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
  ChangeQueues(job.queue, change);
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
    ListEnd(job, absl::InfiniteFuture(), end);
  } else {
    queue.occupying_jobs.erase(HolderKeyOf(job));
    queue.graded_jobs.erase(HolderKeyOf(job));
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

JobStatus StateEditor::SetJobStatus(JobId id, JobStatus status) {
  Job& job = state_.jobs_.At(id);
  const GangStart before = StartOf(job.status);
  const Time end = PlannedEnd(job);
  std::swap(job.status, status);
  if (facts() &&
      (job.status.attained != status.attained || job.status.line_from != status.line_from)) {
    state_.unranked_.push_back(id);
  }
  StatusChanged(job, before, end);
  return status;
}

GangStart StateEditor::SetGangStart(JobId id, const GangStart& start) {
  Job& job = state_.jobs_.At(id);
  const GangStart before = StartOf(job.status);
  const Time end = PlannedEnd(job);
  job.status.state = start.state;
  job.status.starts = start.starts;
  job.status.bound = start.bound;
  StatusChanged(job, before, end);
  return before;
}

// Updates everything that depends on the status; the parameters are the previous values.
void StateEditor::StatusChanged(Job& job, const GangStart& before, Time end_before) {
  if (job.occupying > 0) ListEnd(job, end_before, PlannedEnd(job));
  const JobState old = before.state, now = job.status.state;
  --state_.jobs_by_state_[static_cast<size_t>(old)];
  ++state_.jobs_by_state_[static_cast<size_t>(now)];
  CountInLine(job, (InLine(now) ? 1 : 0) - (InLine(old) ? 1 : 0));

  QueueChange change;
  change.held_jobs = (OnHold(now) ? 1 : 0) - (OnHold(old) ? 1 : 0);
  change.active_jobs = (Ended(old) ? 1 : 0) - (Ended(now) ? 1 : 0);
  change.active_tasks = change.active_jobs * static_cast<int64_t>(job.tasks.size());
  Resources waiting;
  if (change.active_jobs != 0) {
    waiting = WaitingRequest(job);
    change.request = &waiting;
    change.pending = change.active_jobs;
    const GroupTally tally = TallyOf(job);
    for (TaskState waiting_state : {TaskState::kPending, TaskState::kNominated}) {
      state_.tasks_by_state_[static_cast<size_t>(waiting_state)] +=
          int64_t{change.active_jobs} * tally.In(waiting_state);
    }
  }
  if (change.held_jobs != 0 || change.active_jobs != 0) {
    ChangeQueues(job.queue, change);
    RefreshWanting(job);
  }

  const bool waits = WaitsForDependencies(StartOf(job.status));
  if (WaitsForDependencies(before) != waits) ListDependencies(job, waits);
  if (facts() && Ended(now) && !Ended(old)) {
    for (JobId waiting_job : state_.Dependents(job.id)) state_.unsettled_.insert(waiting_job);
  }
  Touch(job.id);
  MarkJob(job.id);
}

void StateEditor::ListDependencies(const Job& job, bool list) {
  for (const JobDependency& dependency : job.dependencies) {
    if (list) {
      state_.dependents_.insert({dependency.job, job.id});
    } else {
      state_.dependents_.erase({dependency.job, job.id});
      MayForget(dependency.job);
    }
  }
}

// Its time to live may have been waiting for its last dependent.
void StateEditor::MayForget(JobId id) {
  if (facts() && state_.jobs_.Find(id) != nullptr) state_.unsettled_.insert(id);
}

void StateEditor::SetTaskMessage(TaskKey key, absl::string_view message) {
  if (message.empty()) {
    if (state_.task_messages_.erase(key) == 0) return;
  } else {
    state_.task_messages_[key] = std::string(message);
  }
  if (facts()) state_.dirty_.tasks.push_back(key);
}

void StateEditor::SetJobPriority(JobId id, int32_t priority) {
  Job& job = state_.jobs_.At(id);
  LeavePending(job);
  if (job.occupying > 0) ListOccupying(job, false);
  job.priority = priority;
  if (job.occupying > 0) ListOccupying(job, true);
  Touch(id);
  MarkJob(id);
}

void StateEditor::AddJob(JobId id, const JobSpec& spec, Time submit,
                         const RunPrediction& prediction) {
  Job& job = state_.jobs_.Emplace(id);
  FillJob(id, spec, submit, job);
  job.prediction = prediction;
  state_.unranked_.push_back(id);
  job.shared =
      state_.interner_.AcquireTemplate(spec.groups, spec.policies, spec.topology, spec.affinity);
  job.groups = job.shared->groups;
  job.topology = &job.shared->topology;
  job.affinity = job.shared->affinity;
  job.policies = job.shared->policies;
  size_t tasks = 0;
  for (const Group& group : job.groups) {
    GroupTally tally;
    tally.count[static_cast<size_t>(TaskState::kPending)] = group.replicas;
    job.tallies.push_back(tally);
    tasks += static_cast<size_t>(group.replicas);
  }
  job.tasks.Reset(tasks);
  state_.tasks_by_state_[static_cast<size_t>(TaskState::kPending)] += static_cast<int64_t>(tasks);
  ++state_.jobs_by_state_[static_cast<size_t>(job.status.state)];
  BERTH_CHECK(state_.job_names_.emplace(job.name, id).second);
  if (state_.next_job_id_ <= id) state_.next_job_id_ = JobId{id.value + 1};

  const Resources waiting = WaitingRequest(job);
  job.wanting = true;
  QueueChange change{.request = &waiting, .pending = 1, .wanted = 1, .jobs = 1, .active_jobs = 1};
  change.active_tasks = static_cast<int64_t>(tasks);
  ChangeQueues(job.queue, change);
  ListDependencies(job, true);
  state_.affinity_.UpdateTerms(job, true);
  Touch(id);
  if (!facts()) return;
  state_.dirty_.new_jobs.push_back(id);
  state_.unsettled_.insert(id);
}

void StateEditor::EraseJob(JobId id) {
  Job& job = state_.jobs_.At(id);
  BERTH_CHECK(job.occupying == 0 && TallyOf(job).Nominated() == 0);
  LeavePending(job);
  DropTimer(job);
  if (const auto found = state_.short_since_.find(id); found != state_.short_since_.end()) {
    state_.short_jobs_.erase({found->second, id});
    state_.short_since_.erase(found);
  }
  if (WaitsForDependencies(StartOf(job.status))) ListDependencies(job, false);
  const bool active = !Ended(job.status.state);
  const Resources waiting = active ? WaitingRequest(job) : Resources{};
  QueueChange change{.request = &waiting, .pending = -1, .jobs = -1};
  change.active_jobs = active ? -1 : 0;
  change.active_tasks = active ? -static_cast<int64_t>(job.tasks.size()) : 0;
  change.wanted = job.wanting ? -1 : 0;
  change.held_jobs = OnHold(job.status.state) ? -1 : 0;
  ChangeQueues(job.queue, change);
  --state_.jobs_by_state_[static_cast<size_t>(job.status.state)];
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    const TaskState state = job.tasks[t].state;
    state_.tasks_by_state_[static_cast<size_t>(state)] -= Counts(job, state);
    SetTaskMessage({id, t}, "");
  }
  state_.affinity_.UpdateTerms(job, false);
  state_.unsettled_.erase(id);
  state_.reservations_.erase(id);
  state_.job_names_.erase(job.name);
  state_.interner_.ReleaseTemplate(job.shared);
  state_.jobs_.Erase(id);
  if (facts()) state_.dirty_.jobs.push_back(id);
}

void StateEditor::RefreshPending(Job& job) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.empty()) {
    LeavePending(job);
    return RefreshWanting(job);
  }
  const Demand demand = DemandOf(state_.queues_.At(job.queue), job, needs, state_.affinity_);
  if (job.pending_class != ClassId{}) {
    if (state_.pending_.Class(job.pending_class).demand == demand) return;
    LeavePending(job);
  }
  RememberClass(job);
  job.pending_class = state_.pending_.Add(demand, KeyOf(job), facts());
  RefreshWanting(job);
}

void StateEditor::LeavePending(Job& job) {
  if (job.pending_class == ClassId{}) return;
  RememberClass(job);
  state_.pending_.Remove(job.pending_class, KeyOf(job));
  if (!facts()) {  // the next job of the class will be tried soon
    const auto& equal = state_.pending_.Class(job.pending_class).jobs;
    if (!equal.empty()) state_.jobs_.Prefetch(equal.begin()->job, kPlannedBytes);
  }
  job.pending_class = ClassId{};
}

void StateEditor::RememberClass(Job& job) {
  if (!remembers_classes_ || std::exchange(job.class_remembered, true)) return;
  origins_.push_back({job.id, job.pending_class});
}

void StateEditor::Prefetch(JobId id) const { state_.jobs_.Prefetch(id, kPlannedBytes); }

void StateEditor::RestoreClasses() {
  touched_.clear();
  for (size_t i = 0; i < origins_.size(); ++i) {
    if (i + kAhead < origins_.size()) state_.jobs_.Prefetch(origins_[i + kAhead].job, 64);
    const Origin& origin = origins_[i];
    Job& job = state_.jobs_.At(origin.job);
    job.class_remembered = false;
    if (job.pending_class == origin.pending_class) continue;
    if (job.pending_class != ClassId{}) state_.pending_.Remove(job.pending_class, KeyOf(job));
    job.pending_class = origin.pending_class;
    if (job.pending_class != ClassId{}) state_.pending_.Return(job.pending_class, KeyOf(job));
    RefreshWanting(job);
  }
  origins_.clear();
  state_.pending_.DropEmpty();  // forget verdicts on tentative classes
}

void StateEditor::KeepClasses(ClassId first) {
  for (const Origin& origin : origins_) state_.jobs_.At(origin.job).class_remembered = false;
  origins_.clear();
  const ClassId end = state_.pending_.next_class();
  for (ClassId id = first; id < end; ++id.value) {
    const PendingClass* made = state_.pending_.FindClass(id);
    if (made == nullptr || made->jobs.empty()) continue;
    const ClassId fresh = state_.pending_.Renew(id);
    for (const OrderKey& key : state_.pending_.Class(fresh).jobs) {
      Job& job = state_.jobs_.At(key.job);
      job.pending_class = fresh;
      RefreshWanting(job);
    }
  }
}

void StateEditor::RefreshTimer(Job& job) {
  const Time before = job.has_timer ? state_.timer_of_.at(job.id) : Time(absl::InfiniteFuture());
  const Time due = NextDue(job, state_.passed_time_, before);
  if (due == before) return;
  DropTimer(job);
  if (due == absl::InfiniteFuture()) return;
  state_.timers_.insert({due, job.id});
  state_.timer_of_[job.id] = due;
  job.has_timer = true;
}

void StateEditor::RefreshShort(const Job& job) {
  const Time since = ShortSince(job);
  const auto found = state_.short_since_.find(job.id);
  const bool listed = found != state_.short_since_.end();
  if (!listed && since == absl::InfiniteFuture()) return;
  if (listed && found->second == since) return;
  if (listed) {
    state_.short_jobs_.erase({found->second, job.id});
    state_.short_since_.erase(found);
  }
  if (since == absl::InfiniteFuture()) return;
  state_.short_jobs_.insert({since, job.id});
  state_.short_since_[job.id] = since;
}

void StateEditor::DropTimer(Job& job) {
  if (!job.has_timer) return;
  const auto found = state_.timer_of_.find(job.id);
  state_.timers_.erase({found->second, job.id});
  state_.timer_of_.erase(found);
  job.has_timer = false;
}

}  // namespace berth
