// Lifecycle policies: incident -> action, as the group or the job specifies, otherwise by default.
//
// Incidents are derived from the state: a failed task that was not requeued, a task on a silent
// node, a group that succeeded, an expired walltime. Group policies come before the job's; the
// first match decides. Defaults: TaskFailed restarts the job while retries are left; NodeLost
// restarts what was lost (the job, if its minimum is lost) without using a retry; Timeout aborts.
// kAny matches every incident except TaskCompleted.
//
// A restart for an incident that the job itself caused (anything but NodeLost) uses a retry and
// waits for the back-off: a restarted job before it is placed again, a restarted task or group
// before it is requeued. Actions that wait, for back-off or for a policy's `after`, are in
// JobStatus::delayed. They are dropped when the incident is over (the node came back).
//
// Example: worker-3 exits with 137, policy {TaskFailed [137] -> RestartTask after 30s}, backoff 1s:
//   now      delayed = [RestartTask worker-3 due now+30s], retries = 1
//   now+30s  TasksRequeued [worker-3]; the others kept running
#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/task_message.h"

namespace berth {
namespace {

constexpr uint32_t kWholeJob = UINT32_MAX;  // as DelayedAction::task
constexpr int kMaxBackoffDoublings = 6;     // 64 times retry_backoff

struct Incident {
  PolicyEvent event;
  uint32_t group;  // or kWholeJob
  uint32_t task;   // or kWholeJob
  // From the matching policy.
  PolicyAction action = PolicyAction::kIgnore;
  Duration after = absl::ZeroDuration();
  std::optional<Time> due = std::nullopt;  // of the delayed action that represents it
};

bool IsRestart(PolicyAction action) { return action <= PolicyAction::kRestartJob; }
bool OwnDoing(const Incident& incident) { return incident.event != PolicyEvent::kNodeLost; }
bool UsesRetry(const Incident& incident) {
  return OwnDoing(incident) && IsRestart(incident.action);
}

uint32_t AttemptOf(const Job& job, const Incident& incident) {
  return incident.task == kWholeJob ? job.status.starts : job.tasks[incident.task].attempt;
}

int32_t ExitCode(const Task& task) {
  return task.exit_signal != 0 ? 128 + task.exit_signal : task.exit_code;
}

// "64Mi"
std::string MemoryText(int64_t bytes) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  for (; unit + 1 < std::size(kUnits) && bytes > 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return absl::StrCat(bytes, kUnits[unit]);
}

// "worker-0 exited with 127 on n1: command not found: trian.py"
std::string HowItFailed(const Look& look, uint32_t index) {
  const Job& job = look.job;
  const std::string label = TaskLabel(job, index);
  const std::string where = OnNode(look, index);
  const int32_t code = ExitCode(job.tasks[index]);
  const std::string text(look.state.TaskMessage({job.id, index}));
  if (!absl::StrContains(text, kOutOfMemory)) {
    const char* separator = text.empty() ? "" : ": ";
    return absl::StrCat(label, " exited with ", code, where, separator, text);
  }
  const TaskShape& shape = look.state.interner().Shape(job.groups[GroupOf(job, index)].shape).shape;
  const std::string asked = shape.memory_bytes == 0
                                ? ""
                                : absl::StrCat(": it requested ", MemoryText(shape.memory_bytes));
  return absl::StrCat(label, " ran out of memory", where, asked, " (exit ", code, ")");
}

std::string Message(const Look& look, const Incident& incident) {
  switch (incident.event) {
    case PolicyEvent::kTaskFailed:
      return HowItFailed(look, incident.task);
    case PolicyEvent::kNodeLost:
      return absl::StrCat(TaskLabel(look.job, incident.task), " was lost",
                          OnNode(look, incident.task));
    case PolicyEvent::kTaskCompleted:
      return absl::StrCat("group ", look.job.groups[incident.group].name, " completed");
    default:
      return absl::StrCat("walltime of ", absl::FormatDuration(look.job.walltime), " used up");
  }
}

// ---- Which incidents are there?

std::optional<PolicyEvent> EventOf(const Job& job, const Task& task) {
  if (task.state == TaskState::kFailed) {
    if (task.end_cause == EndCause::kExit) return PolicyEvent::kTaskFailed;
    // kStopped: killed without our decision, so the job did not cause it either.
    const bool taken =
        task.end_cause == EndCause::kNodeLost || task.end_cause == EndCause::kStopped;
    if (taken) return PolicyEvent::kNodeLost;
  }
  const bool silent = task.state == TaskState::kLost && Holds(task);
  if (silent && job.on_node_loss != NodeLossPolicy::kKeep) return PolicyEvent::kNodeLost;
  return std::nullopt;
}

std::vector<Incident> Incidents(const Look& look) {
  const Job& job = look.job;
  std::vector<Incident> incidents;
  const GroupTally tally = TallyOf(job);
  if (tally.In(TaskState::kFailed) + tally.In(TaskState::kLost) > 0) {
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      const std::optional<PolicyEvent> event = EventOf(job, job.tasks[i]);
      if (event.has_value()) incidents.push_back({*event, GroupOf(job, i), i});
    }
    // A lost node explains the failures of tasks that talked to it, so they use no retry.
    std::stable_partition(incidents.begin(), incidents.end(),
                          [](const Incident& one) { return !OwnDoing(one); });
  }
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].In(TaskState::kSucceeded) < job.groups[g].replicas) continue;
    incidents.push_back({PolicyEvent::kTaskCompleted, g, job.groups[g].first_task});
  }
  // A job whose last task ended at that very moment met its walltime.
  const bool overdue =
      job.status.state == JobState::kRunning && job.status.start + job.walltime <= look.now;
  if (overdue && tally.Occupying() + tally.Waiting() > 0) {
    incidents.push_back({PolicyEvent::kTimeout, kWholeJob, kWholeJob});
  }
  return incidents;
}

// ---- Which policy applies?

bool Matches(const LifecyclePolicy& policy, const Job& job, const Incident& incident) {
  if (policy.event == PolicyEvent::kAny) return incident.event != PolicyEvent::kTaskCompleted;
  if (policy.event != incident.event) return false;
  if (incident.event != PolicyEvent::kTaskFailed || policy.exit_codes.empty()) return true;
  const int32_t code = ExitCode(job.tasks[incident.task]);
  return std::find(policy.exit_codes.begin(), policy.exit_codes.end(), code) !=
         policy.exit_codes.end();
}

const LifecyclePolicy* FindPolicy(const Job& job, const Incident& incident) {
  // For incidents of the whole job, the first group with a matching policy decides.
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (incident.group != kWholeJob && incident.group != g) continue;
    for (const LifecyclePolicy& policy : job.groups[g].policies) {
      if (Matches(policy, job, incident)) return &policy;
    }
  }
  for (const LifecyclePolicy& policy : job.policies) {
    if (Matches(policy, job, incident)) return &policy;
  }
  return nullptr;
}

PolicyAction DefaultAction(const Job& job, const Incident& incident, const TaskList& lost) {
  switch (incident.event) {
    case PolicyEvent::kTaskFailed:
      return PolicyAction::kRestartJob;
    case PolicyEvent::kNodeLost:
      return KeepsMinimum(job, lost) ? PolicyAction::kRestartTask : PolicyAction::kRestartJob;
    case PolicyEvent::kTimeout:
      return PolicyAction::kAbort;
    default:
      return PolicyAction::kIgnore;
  }
}

// An action on one task needs a task.
PolicyAction Widen(PolicyAction action, const Incident& incident) {
  if (action == PolicyAction::kRestartTask && incident.event == PolicyEvent::kTaskCompleted) {
    return PolicyAction::kRestartGroup;
  }
  const bool narrow = action == PolicyAction::kRestartTask || action == PolicyAction::kRestartGroup;
  return narrow && incident.task == kWholeJob ? PolicyAction::kRestartJob : action;
}

// Incidents that need an action, each with its action.
std::vector<Incident> Answered(const Look& look) {
  std::vector<Incident> incidents = Incidents(look);
  TaskList lost;
  for (const Incident& one : incidents) {
    if (!OwnDoing(one)) lost.push_back(one.task);
  }
  for (Incident& one : incidents) {
    const LifecyclePolicy* policy = FindPolicy(look.job, one);
    one.action =
        policy != nullptr ? Widen(policy->action, one) : DefaultAction(look.job, one, lost);
    if (policy != nullptr) one.after = policy->after;
    for (const DelayedAction& delayed : look.job.status.delayed) {
      if (delayed.task == one.task && delayed.attempt == AttemptOf(look.job, one)) {
        one.due = delayed.due;
      }
    }
  }
  incidents.erase(
      std::remove_if(incidents.begin(), incidents.end(),
                     [](const Incident& one) { return one.action == PolicyAction::kIgnore; }),
      incidents.end());
  return incidents;
}

// ---- When?

// The delay between an incident and its action; everything else continues in the meantime.
Duration DelayOf(const Look& look, const Incident& incident) {
  const bool partial = incident.action == PolicyAction::kRestartTask ||
                       incident.action == PolicyAction::kRestartGroup;
  if (!partial || !OwnDoing(incident)) return incident.after;
  return std::max(incident.after, RetryBackoff(look.job, look.job.status.retries + 1));
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
  return UsesRetry(incident) && look.job.status.retries >= look.job.max_retries;
}

Step GiveUp(const Look& look, const Incident& incident) {
  std::string message = Message(look, incident);
  if (look.job.max_retries > 0) {
    absl::StrAppend(&message, "; all ", look.job.max_retries, " retries are used");
  } else if (FindPolicy(look.job, incident) != nullptr) {
    absl::StrAppend(&message, "; max_retries is 0");
  }
  return Conclude(look, JobState::kFailed, message);
}

// Incidents of the same moment with the same action wait together and use one retry.
Step Delay(const Look& look, const Incident& first, const std::vector<Incident>& incidents) {
  if (OutOfRetries(look, first)) return GiveUp(look, first);
  return {WithStatus(look, [&](JobStatus& status) {
    if (UsesRetry(first)) ++status.retries;
    status.message = Message(look, first);
    for (const Incident& one : incidents) {
      const bool alike = one.action == first.action && OwnDoing(one) == OwnDoing(first) &&
                         one.after == first.after && !one.due.has_value();
      if (!alike) continue;
      status.delayed.push_back({.action = one.action,
                                .task = one.task,
                                .attempt = AttemptOf(look.job, one),
                                .due = look.now + DelayOf(look, first),
                                .message = Message(look, one)});
    }
  })};
}

// ---- Execute

bool Ready(const Look& look, const Incident& incident) {
  if (incident.due.has_value()) return *incident.due <= look.now;
  return DelayOf(look, incident) == absl::ZeroDuration() && !Covered(look.job, incident);
}

// Requeues the tasks and drops their delayed actions.
Step RestartTasks(const Look& look, const TaskList& tasks, const std::string& message,
                  bool new_retry) {
  Step step;
  Requeue(look, tasks, ReleaseReason::kRestart, &step);
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    const auto answered = [&](const DelayedAction& delayed) {
      return std::binary_search(tasks.begin(), tasks.end(), delayed.task);
    };
    status.delayed.erase(std::remove_if(status.delayed.begin(), status.delayed.end(), answered),
                         status.delayed.end());
    status.message = message;
    if (new_retry) ++status.retries;
  }));
  return step;
}

TaskList AllReadyTasks(const Look& look, const Incident& first,
                       const std::vector<Incident>& incidents) {
  TaskList tasks;
  for (const Incident& one : incidents) {
    const bool alike = one.action == first.action && OwnDoing(one) == OwnDoing(first) &&
                       one.due.has_value() == first.due.has_value();
    if (alike && Ready(look, one)) tasks.push_back(one.task);
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

TaskList TasksOfGroup(const Job& job, uint32_t group) {
  TaskList tasks;
  const uint32_t first = job.groups[group].first_task;
  for (int32_t i = 0; i < job.groups[group].replicas; ++i) {
    tasks.push_back(first + static_cast<uint32_t>(i));
  }
  return tasks;
}

Step Execute(const Look& look, const Incident& incident, const std::vector<Incident>& incidents) {
  const bool new_retry = UsesRetry(incident) && !incident.due.has_value();
  if (new_retry && OutOfRetries(look, incident)) return GiveUp(look, incident);
  const std::string message = Message(look, incident);
  const int32_t retries = look.job.status.retries + (new_retry ? 1 : 0);
  switch (incident.action) {
    case PolicyAction::kRestartTask:
      return RestartTasks(look, AllReadyTasks(look, incident, incidents), message, new_retry);
    case PolicyAction::kRestartGroup:
      return RestartTasks(look, TasksOfGroup(look.job, incident.group), message, new_retry);
    case PolicyAction::kRestartJob: {
      const Time hold_until =
          OwnDoing(incident) ? look.now + RetryBackoff(look.job, retries) : absl::InfinitePast();
      return RestartJob(look, ReleaseReason::kRestart, message, hold_until, retries,
                        /*rerun_all=*/OwnDoing(incident));
    }
    case PolicyAction::kAbort:
      return Conclude(look, JobState::kFailed, message);
    case PolicyAction::kComplete:
      return Conclude(look, JobState::kSucceeded, message);
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
