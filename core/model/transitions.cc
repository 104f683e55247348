#include "core/model/transitions.h"

#include <algorithm>

namespace berth {
namespace {

Task InState(const Task& before, TaskState state, Time now) {
  Task task = before;
  task.state = state;
  task.since = now;
  return task;
}

// Ends that are the node's fault do not count against the job.
EndCause CauseOf(ExitCause cause) {
  switch (cause) {
    case ExitCause::kItself:
    case ExitCause::kSupervisorLost:  // most likely killed by its own task
      return EndCause::kExit;
    case ExitCause::kKilled:  // killed without a release: the server had lost track of it
    case ExitCause::kLeaseLapsed:
    case ExitCause::kReboot:
    case ExitCause::kGone:
      return EndCause::kNodeLost;
    case ExitCause::kDevice:
      return EndCause::kDevice;
  }
  return EndCause::kExit;
}

Task ExitedTask(const Task& before, const TaskReported& report, bool saved, Time now) {
  const EndCause cause = CauseOf(report.cause);
  Task task = GoneTask(before, cause, now);
  task.exit_code = report.exit_code;
  task.exit_signal = report.exit_signal;
  // It failed before the order to stop reached it.
  const bool failed = (cause == EndCause::kExit || cause == EndCause::kDevice) && !saved &&
                      (report.exit_code != 0 || report.exit_signal != 0);
  if (failed && Releasing(before) && before.epoch > 0) task.end_cause = cause;
  const bool well = !saved && cause == EndCause::kExit && report.exit_code == 0 &&
                    report.exit_signal == 0 && report.cause == ExitCause::kItself;
  if (well) {  // even if it was just told to stop: it had already finished
    task.state = TaskState::kSucceeded;
    task.claimed = false;
    task.node = before.node;
    task.devices = DeviceSet{};
    task.end_cause = EndCause::kExit;
  }
  return task;
}

}  // namespace

Task BoundTask(const Task& before, const Placement& placement, Time now) {
  Task task = InState(before, TaskState::kBound, now);
  ++task.attempt;
  task.node = placement.node;
  task.devices = placement.devices;
  if (placement.node != before.node || before.epoch == 0) task.port = 0;
  task.released = ReleaseReason::kCancelled;
  task.requeue = task.own_fault = task.nobodys_fault = false;
  task.end_cause = EndCause::kNone;
  task.ready = false;
  task.start = task.saved = absl::InfinitePast();
  task.pause = PauseState::kRuns;
  task.devices_lent = false;
  return task;
}

GangStart AfterBind(const JobStatus& before, bool gang, uint32_t epoch, Time now) {
  GangStart start{.state = before.state,
                  .starts = before.starts,
                  .bound = before.bound,
                  .epoch = epoch > 0 ? epoch : before.epoch};
  if (!gang) return start;
  start.state = JobState::kBinding;
  ++start.starts;
  start.bound = now;
  return start;
}

Task RankedTask(const Task& bound, const MemberRank& rank) {
  Task task = bound;
  task.rank = rank.rank;
  task.world = rank.world;
  task.epoch = rank.epoch;
  if (rank.epoch == 0) task.port = 0;
  return task;
}

JobStatus Evicted(const JobStatus& before, const TasksReleased& event, Time now) {
  JobStatus status = before;
  ++status.evictions;
  status.eviction = {.time = now,
                     .reason = event.reason,
                     .beneficiary = event.beneficiary,
                     .tasks = static_cast<int32_t>(event.tasks.size()),
                     .detail = event.detail};
  return status;
}

Task StartedTask(const Task& before, Time now) {
  return InState(before, TaskState::kStarting, now);
}

Task ReleasedTask(const Task& before, bool requeue, ReleaseReason reason, Time now) {
  Task task = before;
  if (before.epoch > 0) task.released = reason;
  task.requeue = requeue;
  task.claimed = false;
  task.moves = false;
  task.next_node = NodeId{};
  task.next_devices = DeviceSet{};
  // It is thawed to end; its CPU, and devices that it lends, may be somebody else's by now.
  task.pause = Frozen(before) ? PauseState::kPaused : PauseState::kRuns;
  if (before.state == TaskState::kLost) {
    task.before_lost = TaskState::kReleasing;
  } else if (before.state != TaskState::kReleasing) {
    task.state = TaskState::kReleasing;
    task.since = now;
  }
  return task;
}

Task PausingTask(const Task& before) {
  Task task = before;
  task.pause = Frozen(before) ? PauseState::kPaused : PauseState::kPausing;
  return task;
}

Task FrozenTask(const Task& before) {
  Task task = before;
  task.pause = PauseState::kPaused;
  return task;
}

Task ResumingTask(const Task& before) {
  Task task = before;
  task.pause = PauseState::kResuming;
  return task;
}

Task ResumedTask(const Task& before) {
  Task task = before;
  task.pause = PauseState::kRuns;
  task.devices_lent = false;
  return task;
}

JobStatus StoppedClock(const JobStatus& before, const TasksPaused& event, Time now) {
  JobStatus status = before;
  const bool yields = event.beneficiary != JobId{};
  if (yields) {
    status.pause.beneficiary = event.beneficiary;
    status.pause.detail = event.detail;
  }
  // One that was about to go on after its user's pause begins another.
  const bool anew = yields && before.pause.beneficiary == JobId{};
  if (!IsPaused(before)) status.pause.since = now;
  if (!IsPaused(before) || anew) status.pause.until = event.until;
  return status;
}

JobStatus ResumedClock(const JobStatus& before, Time now) {
  JobStatus status = before;
  if (!IsPaused(before)) return status;
  // Never 0: that it was paused matters (server/controllers/launch.cc).
  const Duration paused = std::max(now - before.pause.since, absl::Nanoseconds(1));
  status.pause.total += paused;
  status.pause.resumed = now;
  if (status.first_start != absl::InfinitePast()) status.first_start += paused;
  status.pause.since = absl::InfinitePast();
  status.pause.until = absl::InfiniteFuture();
  status.pause.beneficiary = JobId{};
  status.pause.detail.clear();
  return status;
}

bool MayPause(const Task& task) {
  if (task.devices_lent && (!Frozen(task) || task.devices.Empty())) return false;
  const bool lost = task.state == TaskState::kLost;
  const TaskState state = lost ? task.before_lost : task.state;
  if (task.pause == PauseState::kRuns || state == TaskState::kRunning) return true;
  return task.pause == PauseState::kPaused && state == TaskState::kReleasing;
}

bool NonePaused(const Job& job) {
  return std::all_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.pause == PauseState::kRuns; });
}

Task RequeuedTask(const Task& before, Time now) {
  return InState(before, TaskState::kPending, now);
}

Task NominatedTask(const Task& before, const Placement& placement, Time now) {
  Task task = InState(before, TaskState::kNominated, now);
  task.node = placement.node;
  task.devices = placement.devices;
  return task;
}

Task UnnominatedTask(const Task& before, Time now) {
  Task task = InState(before, TaskState::kPending, now);
  task.devices = DeviceSet{};
  task.claimed = false;
  task.pause = PauseState::kRuns;  // Transaction::Vanish
  return task;
}

std::vector<uint32_t> TasksToClaim(const Job& job) {
  std::vector<uint32_t> tasks;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool holds = Reserves(task.state) || Occupies(task.state);
    if (holds && !task.claimed && (!Releasing(task) || task.moves)) tasks.push_back(i);
  }
  return tasks;
}

Task ClaimedTask(const Task& before) {
  Task task = before;
  task.claimed = true;
  return task;
}

Task MovedTask(const Task& released, bool claimed, const Placement& to) {
  Task task = released;
  task.claimed = claimed;
  task.moves = true;
  task.next_node = to.node;
  task.next_devices = to.devices;
  return task;
}

Task ReportedTask(const Task& before, const TaskReported& report, bool saved, Time now) {
  switch (report.state) {
    case ReportState::kPrepared: {
      Task task = InState(before, TaskState::kPrepared, now);
      task.port = report.port;
      return task;
    }
    case ReportState::kRunning: {
      Task task = InState(before, TaskState::kRunning, now);
      task.start = now;
      return task;
    }
    case ReportState::kRefused: {
      Task task = GoneTask(before, EndCause::kRefused, now);
      const bool refused = task.end_cause == EndCause::kRefused;
      task.own_fault = refused && report.own_fault;
      task.nobodys_fault = refused && report.nobodys_fault && !report.own_fault;
      return task;
    }
    case ReportState::kExited:
      return ExitedTask(before, report, saved, now);
    case ReportState::kPaused: {
      Task task = FrozenTask(before);
      task.devices_lent = report.devices_lent;
      return task;
    }
  }
  return before;
}

Task GoneTask(const Task& before, EndCause cause, Time now) {
  const bool released = Releasing(before);
  const bool again = released && before.requeue;
  Task task = InState(before, again ? TaskState::kPending : TaskState::kFailed, now);
  task.end_cause = released ? EndCause::kStopped : cause;
  task.requeue = false;
  task.pause = PauseState::kRuns;
  task.devices_lent = false;
  task.before_lost = TaskState::kPending;
  task.devices = DeviceSet{};
  if (task.epoch == 0) task.port = 0;  // otherwise kept: a Start that is repeated names it
  task.claimed = task.claimed && task.moves && again;
  if (!task.moves) return task;
  const Placement to{.node = task.next_node, .devices = task.next_devices};
  task.moves = false;
  task.next_node = NodeId{};
  task.next_devices = DeviceSet{};
  return again ? NominatedTask(task, to, now) : task;
}

Task LostTask(const Task& before, Time now) {
  Task task = InState(before, TaskState::kLost, now);
  task.before_lost = before.state;
  return task;
}

Task ReturnedTask(const Task& before, Time now) {
  Task task = InState(before, before.before_lost, now);
  task.before_lost = TaskState::kPending;
  return task;
}

Task SilencedTask(const Task& before, NodeLossPolicy policy, Time now) {
  const bool give_up = policy == NodeLossPolicy::kReplaceNow;
  return give_up ? GoneTask(before, EndCause::kNodeLost, now) : LostTask(before, now);
}

bool EndsAtFence(const Task& task, NodeLossPolicy policy) {
  const bool runs_again = !Releasing(task) || task.requeue;
  return policy != NodeLossPolicy::kKeep || !runs_again;
}

Task EndedByForce(const Task& before, Time now) {
  const Task released = ReleasedTask(before, /*requeue=*/false, ReleaseReason::kCancelled, now);
  return GoneTask(released, EndCause::kNodeLost, now);
}

FreeRanks::FreeRanks(const Job& job, bool gang, absl::Span<const Placement> placements)
    : taken_(job.tasks.size(), 0) {
  if (job.tasks.size() == 1) return;  // the most common case
  absl::InlinedVector<uint8_t, 64> own(job.tasks.size(), 0);
  for (const Placement& placement : placements) own[placement.task] = 1;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    // Remaining tasks of an earlier gang that are being released are not members of a new one.
    if (own[i] != 0 || !Occupies(task.state) || (gang && Releasing(task))) continue;
    if (task.rank != kNoRank && !Releasing(task)) ++others_;
    if (task.rank < taken_.size()) taken_[task.rank] = 1;
  }
}

bool Releasing(const Task& task) {
  return task.state == TaskState::kReleasing ||
         (task.state == TaskState::kLost && task.before_lost == TaskState::kReleasing);
}

TaskState TallyState(const Task& task) {
  return Releasing(task) ? TaskState::kReleasing : task.state;
}

}  // namespace berth
