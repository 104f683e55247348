// Lifecycle policies: incident -> action, as the group or the job specifies, otherwise by default.
//
// Incidents are derived from the state (incidents.h): a failed task that was not requeued, a task
// on a silent node, a bad device, a group that succeeded, an expired walltime. Group policies come
// before the job's; the first match decides. Defaults: TaskFailed restarts the job while retries
// are left, or the task if its group finds itself anew (GangMembership::kRendezvous); NodeLost and
// DeviceUnhealthy restart what was lost (the job, if the others cannot go on) without using a
// retry; Timeout aborts. The restart of a task reaches as far as its gang (membership.cc).
//
// A restart for an incident that the job itself caused (OwnDoing) uses a retry and
// waits for the back-off: a restarted job before it is placed again, a restarted task or group
// before it is requeued. Failures that follow from the same one use no further retry (incident.cc).
// Actions that wait, for back-off or for a policy's `after`, are in JobStatus::delayed. They are
// dropped when the incident is over (the node came back).
//
// An escalation (LifecyclePolicy::rung) answers a failure that comes soon after another one with a
// wider restart.
//
// Example: worker-3 exits with 137, policy {TaskFailed [137] -> RestartTask after 30s}, backoff 1s:
//   now      delayed = [RestartTask worker-3 due now+30s], retries = 1
//   now+30s  TasksRequeued [worker-3]; the others kept running
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/lifecycle/incidents.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/waiting.h"

namespace berth {
namespace {

constexpr int kMaxBackoffDoublings = 6;  // 64 times retry_backoff

bool UsesRetry(const Look& look, const Incident& incident) {
  if (!OwnDoing(incident) || !IsRestart(incident.action)) return false;
  const bool follows =
      incident.event == PolicyEvent::kTaskFailed && InIncident(look, look.job.tasks[incident.task]);
  return !follows;
}

uint32_t AttemptOf(const Job& job, const Incident& incident) {
  return incident.task == kWholeJob ? job.status.starts : job.tasks[incident.task].attempt;
}

// ---- Which policy applies?

const LifecyclePolicy* PolicyOfRung(const Job& job, int32_t rung) {
  for (const LifecyclePolicy& policy : job.policies) {
    if (policy.rung == rung) return &policy;
  }
  return nullptr;
}

// On which rung of the escalation this failure is. Those that follow from another one stay on its.
int32_t RungOf(const Look& look, const Incident& incident) {
  const JobStatus& status = look.job.status;
  if (status.rung == 0 || status.incident == absl::InfinitePast()) return 1;
  if (InIncident(look, look.job.tasks[incident.task])) return status.rung;
  const LifecyclePolicy* last = PolicyOfRung(look.job, status.rung);
  if (last == nullptr) return 1;
  if (last->within == absl::ZeroDuration()) return status.rung;  // the widest
  const bool hangs = incident.event == PolicyEvent::kTaskHung;
  const Time begun = hangs ? status.hang.time : look.job.tasks[incident.task].since;
  return begun < status.incident + last->within ? status.rung + 1 : 1;
}

bool Matches(const LifecyclePolicy& policy, const Look& look, const Incident& incident) {
  const Job& job = look.job;
  if (policy.event == PolicyEvent::kAny) return IsFault(incident.event);
  if (policy.event != incident.event) return false;
  if (policy.rung > 0 && policy.rung != RungOf(look, incident)) return false;
  if (incident.event != PolicyEvent::kTaskFailed || policy.exit_codes.empty()) return true;
  const int32_t code = ExitCode(job.tasks[incident.task]);
  return std::find(policy.exit_codes.begin(), policy.exit_codes.end(), code) !=
         policy.exit_codes.end();
}

const LifecyclePolicy* FindPolicy(const Look& look, const Incident& incident) {
  const Job& job = look.job;
  // What happens to a spare is no matter of the job.
  if (incident.group != kWholeJob && IsSpare(job.groups[incident.group])) return nullptr;
  // For incidents of the whole job, the first group with a matching policy decides.
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (incident.group != kWholeJob && incident.group != g) continue;
    for (const LifecyclePolicy& policy : job.groups[g].policies) {
      if (Matches(policy, look, incident)) return &policy;
    }
  }
  for (const LifecyclePolicy& policy : job.policies) {
    if (Matches(policy, look, incident)) return &policy;
  }
  return nullptr;
}

PolicyAction DefaultAction(const Job& job, const Incident& incident, const TaskList& lost) {
  switch (incident.event) {
    case PolicyEvent::kTaskFailed:
    case PolicyEvent::kTaskHung:
      return job.groups[incident.group].membership == GangMembership::kRendezvous
                 ? PolicyAction::kRestartTask
                 : PolicyAction::kRestartJob;
    case PolicyEvent::kDeviceUnhealthy:
      if (MembershipOf(job.groups[incident.group]) == GangMembership::kRigid) {
        return PolicyAction::kRestartTask;  // widened to its gang
      }
      [[fallthrough]];
    case PolicyEvent::kNodeLost:
      return Replaceable(job, lost) ? PolicyAction::kRestartTask : PolicyAction::kRestartJob;
    case PolicyEvent::kTimeout:
      return PolicyAction::kAbort;
    default:
      return PolicyAction::kIgnore;
  }
}

// An action on one task needs a task, and reaches as far as its gang.
PolicyAction Widen(const Job& job, PolicyAction action, const Incident& incident) {
  if (action == PolicyAction::kRestartTask && incident.event == PolicyEvent::kTaskCompleted) {
    action = PolicyAction::kRestartGroup;
  }
  if (!IsRestart(action) || action == PolicyAction::kRestartJob) return action;
  if (incident.task == kWholeJob) return PolicyAction::kRestartJob;
  return WidenForGang(job, incident.task, action);
}

// It hangs, or ended when it was asked for its stacks: there is time for the others to write
// theirs.
bool WaitsForStacks(const Look& look, const Incident& one) {
  const bool own = one.event == PolicyEvent::kTaskHung || one.event == PolicyEvent::kTaskFailed;
  return own && AwaitsStacks(look) && HangsWith(look.job, one.task);
}

// ---- What does a restart mean?

TaskList TasksFrom(uint32_t first, int32_t count) {
  TaskList tasks;
  for (int32_t i = 0; i < count; ++i) tasks.push_back(first + static_cast<uint32_t>(i));
  return tasks;
}

TaskList TasksOfGroup(const Job& job, uint32_t group) {
  return TasksFrom(job.groups[group].first_task, job.groups[group].replicas);
}

// The whole group, if it has no partitions.
TaskList TasksOfPartition(const Job& job, const Incident& incident) {
  const Group& group = job.groups[incident.group];
  if (group.partition_size == 0) return TasksOfGroup(job, incident.group);
  const auto size = static_cast<uint32_t>(group.partition_size);
  const uint32_t inside = incident.task - group.first_task;
  return TasksFrom(group.first_task + inside / size * size, group.partition_size);
}

TaskList Scope(const Job& job, const Incident& incident) {
  switch (incident.action) {
    case PolicyAction::kRestartTask:
      return {incident.task};
    case PolicyAction::kRestartPartition:
      return TasksOfPartition(job, incident);
    case PolicyAction::kRestartGroup:
      return TasksOfGroup(job, incident.group);
    default:
      return TasksFrom(0, static_cast<int32_t>(job.tasks.size()));
  }
}

// A wait is no reason to restart a job of which nothing runs, nor tasks that all wait themselves.
bool RestartsSome(const Look& look, const Incident& incident) {
  if (!Placed(look.job)) return false;
  if (incident.event != PolicyEvent::kTaskPending) return true;
  if (TallyOf(look.job).In(TaskState::kRunning) == 0) return false;
  const TaskList scope = Scope(look.job, incident);
  return std::any_of(scope.begin(), scope.end(),
                     [&](uint32_t task) { return Holds(look.job.tasks[task]); });
}

bool MeansAnything(const Look& look, const Incident& incident) {
  if (incident.action == PolicyAction::kIgnore) return false;
  return !IsRestart(incident.action) || RestartsSome(look, incident);
}

// A task that hung and has ended since is answered once, as one that hung.
void DropFailureOfHung(std::vector<Incident>* incidents) {
  const auto hung = std::find_if(incidents->begin(), incidents->end(), [](const Incident& one) {
    return one.event == PolicyEvent::kTaskHung;
  });
  if (hung == incidents->end()) return;
  const uint32_t task = hung->task;
  incidents->erase(std::remove_if(incidents->begin(), incidents->end(),
                                  [&](const Incident& one) {
                                    return one.event == PolicyEvent::kTaskFailed &&
                                           one.task == task;
                                  }),
                   incidents->end());
}

// Incidents that need an action, each with its action.
std::vector<Incident> Answered(const Look& look) {
  std::vector<Incident> incidents = Incidents(look);
  incidents.erase(std::remove_if(incidents.begin(), incidents.end(),
                                 [&](const Incident& one) { return WaitsForStacks(look, one); }),
                  incidents.end());
  TaskList lost;
  for (const Incident& one : incidents) {
    if (IsFault(one.event) && !OwnDoing(one)) lost.push_back(one.task);
  }
  std::sort(lost.begin(), lost.end());
  for (Incident& one : incidents) {
    const LifecyclePolicy* policy = FindPolicy(look, one);
    one.action = Widen(
        look.job, policy != nullptr ? policy->action : DefaultAction(look.job, one, lost), one);
    if (one.event == PolicyEvent::kTaskPending) continue;  // `after` was part of the event
    if (policy != nullptr) one.after = policy->after;
    for (const DelayedAction& delayed : look.job.status.delayed) {
      if (delayed.task == one.task && delayed.attempt == AttemptOf(look.job, one)) {
        one.due = delayed.due;
      }
    }
  }
  incidents.erase(std::remove_if(incidents.begin(), incidents.end(),
                                 [&](const Incident& one) { return !MeansAnything(look, one); }),
                  incidents.end());
  DropFailureOfHung(&incidents);
  return incidents;
}

// ---- When?

// The delay between an incident and its action; everything else continues in the meantime.
Duration DelayOf(const Look& look, const Incident& incident) {
  const bool partial = IsRestart(incident.action) && incident.action != PolicyAction::kRestartJob;
  if (!partial || !OwnDoing(incident) || incident.event == PolicyEvent::kTaskPending) {
    return incident.after;
  }
  const int32_t retries = look.job.status.retries + (UsesRetry(look, incident) ? 1 : 0);
  return std::max(incident.after, RetryBackoff(look.job, retries));
}

bool Concerns(const DelayedAction& delayed, const Job& job, const Incident& incident) {
  return delayed.task == incident.task && delayed.attempt == AttemptOf(job, incident);
}

// A wider restart is pending and includes this one.
bool Covered(const Job& job, const Incident& incident) {
  if (!IsRestart(incident.action)) return false;
  return std::any_of(
      job.status.delayed.begin(), job.status.delayed.end(), [&](const DelayedAction& delayed) {
        if (delayed.action == PolicyAction::kRestartJob) return true;
        return delayed.action == PolicyAction::kRestartGroup && delayed.task != kWholeJob &&
               incident.task != kWholeJob && GroupOf(job, delayed.task) == incident.group &&
               incident.action != PolicyAction::kRestartJob;
      });
}

Step DropRecovered(const Look& look, const std::vector<Incident>& incidents) {
  const auto over = [&](const DelayedAction& delayed) {
    return std::none_of(incidents.begin(), incidents.end(),
                        [&](const Incident& one) { return Concerns(delayed, look.job, one); });
  };
  const std::vector<DelayedAction>& all = look.job.status.delayed;
  if (std::none_of(all.begin(), all.end(), over)) return {};
  return {WithStatus(look, [&](JobStatus& status) {
    status.delayed.erase(std::remove_if(status.delayed.begin(), status.delayed.end(), over),
                         status.delayed.end());
  })};
}

bool OutOfRetries(const Look& look, const Incident& incident) {
  return UsesRetry(look, incident) && look.job.status.retries >= look.job.max_retries;
}

Step GiveUp(const Look& look, const Incident& incident) {
  std::string message = MessageOf(look, incident);
  if (look.job.max_retries > 0) {
    absl::StrAppend(&message, "; all ", look.job.max_retries, " retries are used");
  } else if (FindPolicy(look, incident) != nullptr) {
    absl::StrAppend(&message, "; max_retries is 0");
  }
  return Conclude(look, JobState::kFailed, message);
}

// When the incident began, if it is a new one of the job's own; else when the latest one did.
Time IncidentOf(const Look& look, const Incident& one) {
  if (!UsesRetry(look, one)) return look.job.status.incident;
  if (look.job.status.epoch == 0) return absl::InfinitePast();  // bound by a version without them
  // The tasks that hung may have ended since; the waits are counted anew from now on.
  if (one.event == PolicyEvent::kTaskHung || one.event == PolicyEvent::kTaskPending) {
    return look.now;
  }
  return one.task == kWholeJob ? look.now : look.job.tasks[one.task].since;
}

// The rung on which the job is once the incident is answered.
uint8_t RungAfter(const Look& look, const Incident& one) {
  if (!UsesRetry(look, one)) return look.job.status.rung;
  const LifecyclePolicy* policy = FindPolicy(look, one);
  return policy == nullptr ? 0 : static_cast<uint8_t>(policy->rung);
}

// Incidents of the same moment with the same action wait together and use one retry.
Step Delay(const Look& look, const Incident& first, const std::vector<Incident>& incidents) {
  if (OutOfRetries(look, first)) return GiveUp(look, first);
  return {WithStatus(look, [&](JobStatus& status) {
    if (UsesRetry(look, first)) ++status.retries;
    status.rung = RungAfter(look, first);
    status.incident = IncidentOf(look, first);
    status.message = MessageOf(look, first);
    for (const Incident& one : incidents) {
      const bool alike = one.action == first.action && OwnDoing(one) == OwnDoing(first) &&
                         one.after == first.after && !one.due.has_value();
      if (!alike) continue;
      status.delayed.push_back({.action = one.action,
                                .task = one.task,
                                .attempt = AttemptOf(look.job, one),
                                .due = look.now + DelayOf(look, first),
                                .message = MessageOf(look, one)});
    }
  })};
}

// ---- Execute

bool Ready(const Look& look, const Incident& incident) {
  if (incident.due.has_value()) return *incident.due <= look.now;
  return DelayOf(look, incident) == absl::ZeroDuration() && !Covered(look.job, incident);
}

// Tasks leave bad devices as they leave draining nodes: there is time to save their work.
ReleaseReason ReasonFor(const Incident& incident) {
  const bool device = incident.event == PolicyEvent::kDeviceUnhealthy;
  return device ? ReleaseReason::kDrain : ReleaseReason::kRestart;
}

// Requeues the tasks and drops their delayed actions.
Step RestartTasks(const Look& look, const Incident& incident, const TaskList& tasks,
                  bool new_retry) {
  Step step;
  Requeue(look, tasks, ReasonFor(incident), &step);
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    const auto answered = [&](const DelayedAction& delayed) {
      return std::binary_search(tasks.begin(), tasks.end(), delayed.task);
    };
    status.delayed.erase(std::remove_if(status.delayed.begin(), status.delayed.end(), answered),
                         status.delayed.end());
    status.message = MessageOf(look, incident);
    if (std::binary_search(tasks.begin(), tasks.end(), status.hang.task)) status.hang = {};
    if (!new_retry) return;
    ++status.retries;
    status.rung = RungAfter(look, incident);
    status.incident = IncidentOf(look, incident);
  }));
  return step;
}

Step RestartForIncident(const Look& look, const Incident& incident, bool new_retry) {
  const int32_t retries = look.job.status.retries + (new_retry ? 1 : 0);
  const Time hold_until =
      OwnDoing(incident) ? look.now + RetryBackoff(look.job, retries) : absl::InfinitePast();
  Step step = RestartJob(look, ReasonFor(incident), MessageOf(look, incident), hold_until, retries,
                         /*rerun_all=*/OwnDoing(incident));
  if (OwnDoing(incident)) {
    JobStatus& status = std::get<JobStatusChanged>(step.back()).status;
    status.incident = new_retry ? IncidentOf(look, incident) : look.job.status.incident;
    status.rung = new_retry ? RungAfter(look, incident) : look.job.status.rung;
  }
  KeepPlaces(look, &step);
  return step;
}

TaskList AllReadyTasks(const Look& look, const Incident& first,
                       const std::vector<Incident>& incidents) {
  TaskList tasks;
  for (const Incident& one : incidents) {
    const bool alike = one.action == first.action && OwnDoing(one) == OwnDoing(first) &&
                       ReasonFor(one) == ReasonFor(first) &&
                       one.due.has_value() == first.due.has_value();
    if (alike && Ready(look, one)) tasks.push_back(one.task);
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

Step Execute(const Look& look, const Incident& incident, const std::vector<Incident>& incidents) {
  const bool new_retry = UsesRetry(look, incident) && !incident.due.has_value();
  if (new_retry && OutOfRetries(look, incident)) return GiveUp(look, incident);
  switch (incident.action) {
    case PolicyAction::kRestartTask:
      return RestartTasks(look, incident, AllReadyTasks(look, incident, incidents), new_retry);
    case PolicyAction::kRestartPartition:
      return RestartTasks(look, incident, TasksOfPartition(look.job, incident), new_retry);
    case PolicyAction::kRestartGroup:
      return RestartTasks(look, incident, TasksOfGroup(look.job, incident.group), new_retry);
    case PolicyAction::kRestartJob:
      return RestartForIncident(look, incident, new_retry);
    case PolicyAction::kAbort:
      return Conclude(look, JobState::kFailed, MessageOf(look, incident));
    case PolicyAction::kComplete:
      return Conclude(look, JobState::kSucceeded, MessageOf(look, incident));
    case PolicyAction::kIgnore:
      break;
  }
  return {};
}

}  // namespace

Duration RetryBackoff(const Job& job, int32_t retries) {
  const int doublings = std::clamp(retries - 1, 0, kMaxBackoffDoublings);
  return job.retry_backoff * (int64_t{1} << doublings);
}

Step ApplyPolicies(const Look& look) {
  const std::vector<Incident> incidents = Answered(look);
  if (Step step = DropRecovered(look, incidents); !step.empty()) return step;
  for (const Incident& one : incidents) {
    if (Ready(look, one)) return Execute(look, one, incidents);
  }
  for (const Incident& one : incidents) {
    if (!one.due.has_value() && !Covered(look.job, one)) return Delay(look, one, incidents);
  }
  return {};
}

}  // namespace berth
