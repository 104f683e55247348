// StateEditor: jobs.
#include <utility>

#include "core/base/check.h"
#include "core/base/fields.h"
#include "core/model/line.h"
#include "core/model/pauses.h"
#include "core/model/state_editor_internal.h"

namespace berth {
namespace {

GangStart StartOf(const JobStatus& status) {
  static_assert(kFields<GangStart> == 4, "here, in SetGangStart and in StatusChanged");
  return {
      .state = status.state, .starts = status.starts, .bound = status.bound, .epoch = status.epoch};
}

// Dependencies matter until the first start.
bool WaitsForDependencies(const GangStart& status) {
  return status.starts == 0 && !Ended(status.state);
}

// Except what AcquireTemplate shares between jobs: groups, policies, topology and affinity.
void FillJob(JobId id, const JobSpec& spec, Time submit, Job& job) {
  static_assert(kFields<JobSpec> == 41, "take the new field over");
  job.id = id;
  job.name = spec.name;
  job.queue = spec.queue;
  job.priority = spec.priority;
  job.min_available = spec.min_available;
  job.max_retries = spec.max_retries;
  job.on_node_loss = spec.on_node_loss;
  job.preemptible = spec.preemptible;
  job.preempts = spec.preempts;
  job.preempt_mode = spec.preempt_mode;
  job.strategy = spec.strategy;
  job.device_strategy = spec.device_strategy;
  job.user = spec.user;
  job.owner = spec.owner;
  job.priority_class = spec.priority_class;
  job.checkpoint_interval = spec.checkpoint_interval;
  job.walltime_notice = spec.walltime_notice;
  job.watchdog = spec.watchdog;
  job.dump_wait = spec.dump_wait;
  job.saved_exit_codes = spec.saved_exit_codes;
  job.saves_before_drain = spec.saves_before_drain;
  job.may_migrate = spec.may_migrate;
  job.suspends_idle = spec.suspends_idle;
  job.checkpoints_devices = spec.checkpoints_devices;
  job.deadline = spec.deadline;
  job.walltime = spec.walltime;
  job.retry_backoff = spec.retry_backoff;
  job.prepare_timeout = spec.prepare_timeout;
  job.kill_grace = spec.kill_grace;
  job.ttl_after_finished = spec.ttl_after_finished;
  job.submit = submit;
  job.start_after = spec.start_after;
  job.min_success = spec.min_success;
  job.run_limit = spec.run_limit;
  job.series = spec.series;
  job.member = spec.member;
  job.dependencies = spec.dependencies;
  job.labels = spec.labels;
  job.status.suspended = spec.suspended;
}

}  // namespace

JobStatus StateEditor::SetJobStatus(JobId id, JobStatus status) {
  Job& job = state_.jobs_.At(id);
  const GangStart before = StartOf(job.status);
  const Time end = PlannedEnd(job);
  std::swap(job.status, status);
  if (ListedAsPaused(status)) state_.paused_jobs_.erase(id);
  if (ListedAsPaused(job.status)) state_.paused_jobs_.insert(id);
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
  job.status.epoch = start.epoch;
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
    change.pending = static_cast<int>(change.active_jobs);
    const GroupTally tally = TallyOf(job);
    for (TaskState waiting_state : {TaskState::kPending, TaskState::kNominated}) {
      state_.tasks_by_state_[static_cast<size_t>(waiting_state)] +=
          change.active_jobs * tally.In(waiting_state);
    }
  }
  if (change.held_jobs != 0 || change.active_jobs != 0) {
    ChangeQueues(job.queue, waiting, change);
    RefreshWanting(job);
  }

  const bool waits = WaitsForDependencies(StartOf(job.status));
  if (WaitsForDependencies(before) != waits) ListDependencies(job, waits);
  if (facts() && Ended(now) && !Ended(old)) {
    for (JobId waiting_job : state_.Dependents(job.id)) state_.unsettled_.insert(waiting_job);
    if (job.member) MayForget(job.member->series);
  }
  Touch(job.id);
  MarkJob(job.id);
}

void StateEditor::AdoptGangStart(JobId id, bool gang) {
  const Job& job = state_.jobs_.At(id);
  if (gang && job.status.starts == 1) {
    for (const JobDependency& dependency : job.dependencies) MayForget(dependency.job);
  }
  MarkJob(id);
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
    const int32_t replicas = job.series ? 0 : group.replicas;
    tally.count[static_cast<size_t>(TaskState::kPending)] = replicas;
    job.tallies.push_back(tally);
    tasks += static_cast<size_t>(replicas);
  }
  job.tasks.Reset(tasks);
  state_.tasks_by_state_[static_cast<size_t>(TaskState::kPending)] += static_cast<int64_t>(tasks);
  ++state_.jobs_by_state_[static_cast<size_t>(job.status.state)];
  BERTH_CHECK(state_.job_names_.emplace(job.name, id).second);
  if (state_.next_job_id_ <= id) state_.next_job_id_ = JobId{id.value + 1};

  job.wanting = true;
  ChangeQueues(job.queue, WaitingRequest(job),
               {.pending = 1,
                .wanted = 1,
                .jobs = 1,
                .active_jobs = 1,
                .active_tasks = static_cast<int64_t>(tasks)});
  ListDependencies(job, true);
  if (job.member) state_.members_.insert({job.member->series, id});
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
  ChangeQueues(job.queue, active ? WaitingRequest(job) : Resources{},
               {.pending = -1,
                .wanted = job.wanting ? -1 : 0,
                .jobs = -1,
                .active_jobs = active ? -1 : 0,
                .active_tasks = active ? -static_cast<int64_t>(job.tasks.size()) : 0,
                .held_jobs = OnHold(job.status.state) ? -1 : 0});
  --state_.jobs_by_state_[static_cast<size_t>(job.status.state)];
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    const TaskState state = job.tasks[t].state;
    state_.tasks_by_state_[static_cast<size_t>(state)] -= Counts(job, state);
    SetTaskMessage({id, t}, "");
  }
  if (job.member) {
    state_.members_.erase({job.member->series, id});
    MayForget(job.member->series);
  }
  state_.affinity_.UpdateTerms(job, false);
  state_.unsettled_.erase(id);
  state_.reservations_.erase(id);
  state_.job_names_.erase(job.name);
  state_.interner_.ReleaseTemplate(job.shared);
  state_.jobs_.Erase(id);
  if (facts()) state_.dirty_.jobs.push_back(id);
}

}  // namespace berth
