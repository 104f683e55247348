#include "core/engine/lifecycle/incidents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/model/waiting.h"

namespace berth {
namespace {

// A policy may ignore bad devices while tasks run on them, but then they are lost when they fail.
PolicyEvent DeviceEvent(const Job& job, uint32_t task) {
  const Group& group = job.groups[GroupOf(job, task)];
  const LifecyclePolicy* policy = PolicyOn(job, group, PolicyEvent::kDeviceUnhealthy);
  const bool ignored = policy != nullptr && policy->action == PolicyAction::kIgnore;
  return ignored ? PolicyEvent::kNodeLost : PolicyEvent::kDeviceUnhealthy;
}

std::optional<PolicyEvent> EventOf(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  if (task.state == TaskState::kFailed) {
    if (Saved(job, task)) return std::nullopt;
    if (task.end_cause == EndCause::kExit) return PolicyEvent::kTaskFailed;
    if (task.end_cause == EndCause::kDevice) return DeviceEvent(job, index);
    // kStopped: killed without our decision, so the job did not cause it either.
    const bool taken =
        task.end_cause == EndCause::kNodeLost || task.end_cause == EndCause::kStopped;
    if (taken) return PolicyEvent::kNodeLost;
  }
  const bool silent = task.state == TaskState::kLost && Holds(task);
  if (silent && job.on_node_loss != NodeLossPolicy::kKeep) return PolicyEvent::kNodeLost;
  return std::nullopt;
}

// Nothing runs any more: all were asked to save their work before the walltime ended, and some did.
bool AllSaved(const Job& job, const GroupTally& tally) {
  if (tally.Occupying() > 0 || tally.In(TaskState::kFailed) == 0) return false;
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [&](const Task& task) { return Saved(job, task); });
}

bool UsesDevices(const Look& look, const Group& group) {
  return !look.state.interner().Shape(group.shape).shape.devices.empty();
}

// Devices of tasks that go on.
void AddUnhealthyDevices(const Look& look, std::vector<Incident>* incidents) {
  if (look.state.expelling_nodes().empty()) return;
  for (uint32_t g = 0; g < look.job.groups.size(); ++g) {
    const Group& group = look.job.groups[g];
    if (look.job.tallies[g].Members() == 0 || !UsesDevices(look, group)) continue;
    for (uint32_t i = 0; i < static_cast<uint32_t>(group.replicas); ++i) {
      const uint32_t task = group.first_task + i;
      if (!MayLeave(look.job.tasks[task]) || UnhealthyDevice(look, task) == nullptr) continue;
      incidents->push_back({PolicyEvent::kDeviceUnhealthy, g, task});
    }
  }
}

void AddFailures(const Look& look, std::vector<Incident>* incidents) {
  const Job& job = look.job;
  // It explains what its tasks do when they are asked for their stacks.
  if (Hangs(job)) {
    const uint32_t task = job.status.hang.task;
    incidents->push_back({PolicyEvent::kTaskHung, GroupOf(job, task), task});
  }
  AddUnhealthyDevices(look, incidents);
  const GroupTally tally = TallyOf(job);
  if (tally.In(TaskState::kFailed) + tally.In(TaskState::kLost) > 0) {
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      const std::optional<PolicyEvent> event = EventOf(job, i);
      if (event.has_value()) incidents->push_back({*event, GroupOf(job, i), i});
    }
  }
  // A lost node or a bad device explains the failures of tasks that talked to it, so they use no
  // retry.
  std::stable_sort(incidents->begin(), incidents->end(), [&](const Incident& a, const Incident& b) {
    if (!OwnDoing(a) || !OwnDoing(b)) return !OwnDoing(a) && OwnDoing(b);
    return FailedBefore(job.tasks[a.task], job.tasks[b.task]);
  });
}

// Tasks that were evicted, and those that have waited too long.
void AddWaits(const Look& look, std::vector<Incident>* incidents) {
  const Job& job = look.job;
  for (const DelayedAction& delayed : job.status.delayed) {
    if (!AwaitsAnswer(job, delayed)) continue;
    incidents->push_back({PolicyEvent::kTaskEvicted, GroupOf(job, delayed.task), delayed.task});
  }
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g])) continue;
    const LifecyclePolicy* policy = PolicyOn(job, job.groups[g], PolicyEvent::kTaskPending);
    if (policy == nullptr) continue;
    const std::optional<Wait> wait = LongestWait(job, g);
    if (!wait.has_value() || wait->since + policy->after > look.now) continue;
    incidents->push_back({PolicyEvent::kTaskPending, g, wait->task});
  }
}

}  // namespace

bool Placed(const Job& job) {
  return job.status.state == JobState::kBinding || job.status.state == JobState::kRunning;
}

std::vector<Incident> Incidents(const Look& look) {
  const Job& job = look.job;
  std::vector<Incident> incidents;
  if (!Placed(job)) {
    AddWaits(look, &incidents);
    return incidents;
  }
  AddFailures(look, &incidents);
  AddWaits(look, &incidents);
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].In(TaskState::kSucceeded) < job.groups[g].replicas) continue;
    incidents.push_back({PolicyEvent::kTaskCompleted, g, job.groups[g].first_task});
  }
  // A job whose last task ended at that very moment met its walltime.
  const bool overdue = job.status.state == JobState::kRunning && WalltimeEnd(job) <= look.now;
  const GroupTally tally = StartersOf(job);
  const bool timed_out = overdue && tally.Occupying() + tally.Waiting() > 0;
  if (timed_out || AllSaved(job, tally)) {
    incidents.push_back({PolicyEvent::kTimeout, kWholeJob, kWholeJob});
  }
  return incidents;
}

bool OwnDoing(const Incident& incident) {
  return incident.event != PolicyEvent::kNodeLost &&
         incident.event != PolicyEvent::kDeviceUnhealthy &&
         incident.event != PolicyEvent::kTaskEvicted;
}

bool IsFault(PolicyEvent event) {
  return event != PolicyEvent::kTaskCompleted && event != PolicyEvent::kTaskEvicted &&
         event != PolicyEvent::kTaskPending;
}

std::string MessageOf(const Look& look, const Incident& incident) {
  switch (incident.event) {
    case PolicyEvent::kTaskFailed:
      return HowItFailed(look, incident.task);
    case PolicyEvent::kNodeLost:
      if (look.job.tasks[incident.task].end_cause == EndCause::kDevice) {
        return HowItFailed(look, incident.task);
      }
      return absl::StrCat(TaskLabel(look.job, incident.task), " was lost",
                          OnNode(look, incident.task));
    case PolicyEvent::kTaskCompleted:
      return absl::StrCat("group ", look.job.groups[incident.group].name, " completed");
    case PolicyEvent::kTaskHung:
      return HowItHangs(look);
    case PolicyEvent::kDeviceUnhealthy:
      return HowItsDeviceFails(look, incident.task);
    case PolicyEvent::kTaskEvicted:
      return HowItWasEvicted(look, incident.task);
    case PolicyEvent::kTaskPending:
      return HowItWaits(look, incident.task);
    default:
      return absl::StrCat("walltime of ", absl::FormatDuration(look.job.walltime), " used up");
  }
}

}  // namespace berth
