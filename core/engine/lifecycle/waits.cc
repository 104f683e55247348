// Tasks that wait: for a place, for their start, or for another place after an eviction.
//
// An eviction is noted where it is decided: NoteEviction adds what the policies for it say to
// JobStatus::delayed, due at once or after the policy's `after`. So each eviction is answered once,
// and not at all if the task is bound again first. A restart for it means others of the job, since
// the evicted task waits for a place by itself; a job that was evicted as a whole restarts anyway.
//
//   10:00  worker-3 is preempted, policy {TaskEvicted -> Abort after 10m}: due 10:10
//   10:04  worker-3 is bound: the action is dropped
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/transitions.h"
#include "core/model/waiting.h"

namespace berth {
namespace {

bool NotesReason(ReleaseReason reason) {
  return IsEviction(reason) || reason == ReleaseReason::kGangExpired;
}

// The tasks that the step evicts.
TaskList EvictedBy(const Step& step) {
  TaskList tasks;
  for (const EventBody& decision : step) {
    const auto* released = std::get_if<TasksReleased>(&decision);
    if (released == nullptr || !NotesReason(released->reason)) continue;
    tasks.insert(tasks.end(), released->tasks.begin(), released->tasks.end());
  }
  return tasks;
}

}  // namespace

void NoteEviction(const Look& look, bool whole, Step* step) {
  const Job& job = look.job;
  JobStatus& status = std::get<JobStatusChanged>(step->back()).status;
  uint32_t noted = UINT32_MAX;  // the group of the latest entry
  for (uint32_t task : EvictedBy(*step)) {
    const uint32_t group = GroupOf(job, task);
    if (whole && group == noted) continue;  // one task for its group
    const LifecyclePolicy* policy = PolicyOn(job, job.groups[group], PolicyEvent::kTaskEvicted);
    if (policy == nullptr || policy->action == PolicyAction::kIgnore) continue;
    if (whole && IsRestart(policy->action)) continue;
    noted = group;
    status.delayed.push_back({.action = policy->action,
                              .task = task,
                              .attempt = job.tasks[task].attempt,
                              .due = look.now + policy->after,
                              .message = absl::StrCat(TaskLabel(job, task), " was evicted")});
  }
}

bool AwaitsAnswer(const Job& job, const DelayedAction& delayed) {
  if (delayed.task >= job.tasks.size()) return false;
  const Task& task = job.tasks[delayed.task];
  return task.attempt == delayed.attempt && (Releasing(task) || Waits(task.state));
}

std::string HowItWasEvicted(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  const std::string label = TaskLabel(look.job, index);
  if (task.released == ReleaseReason::kGangExpired) {
    return absl::StrCat(label, " was stopped: its gang was incomplete for too long");
  }
  const Job* other = look.state.jobs().Find(look.job.status.eviction.beneficiary);
  return absl::StrCat(label, " was evicted",
                      other == nullptr ? "" : absl::StrCat(" for job ", other->name));
}

std::string HowItWaits(const Look& look, uint32_t index) {
  const Group& group = look.job.groups[GroupOf(look.job, index)];
  const LifecyclePolicy* policy = PolicyOn(look.job, group, PolicyEvent::kTaskPending);
  const std::string time =
      policy == nullptr ? "" : absl::StrCat(" for ", absl::FormatDuration(policy->after));
  const std::string label = TaskLabel(look.job, index);
  if (Waits(look.job.tasks[index].state)) {
    return absl::StrCat(label, " has waited for a place", time);
  }
  return absl::StrCat(label, " has waited for its start", OnNode(look, index), time);
}

}  // namespace berth
