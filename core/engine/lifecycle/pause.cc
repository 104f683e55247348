// Pauses. The user holds a job that runs, and it keeps its places: its tasks are frozen where they
// are (JobStatus::pause), not stopped. While they are frozen, others may use their CPU, and the
// job's clock stands still.
//
//   running  -JobSuspended, freeze-> TasksPaused -reported-> paused
//   paused   -JobSuspended off-> TasksResumed, waits -> TasksResumed, once the CPU is free
//   paused too long, or stopped by the user: as any job on hold (hold.cc)
//
// What makes a task leave its place - a failure, a lost or draining node, an eviction, the end -
// applies to frozen tasks as well: they are thawed to end. A job that no longer has its places is
// on hold like any other.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/pauses.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

TaskList InPause(const Job& job, PauseState pause) {
  return TasksWhere(job, [pause](const Task& task) {
    return task.state == TaskState::kRunning && task.pause == pause;
  });
}

std::string WhyNotFrozen(const Look& look, uint32_t task) {
  return absl::StrCat("it was not paused: ", TaskLabel(look.job, task), OnNode(look, task),
                      " was not frozen within ", absl::FormatDuration(kFreezeTimeout));
}

Step Freeze(const Look& look) {
  const Job& job = look.job;
  const Pause& pause = job.status.pause;
  const TaskList pausing = InPause(job, PauseState::kPausing);
  if (!pausing.empty() && IsPaused(job.status) && pause.since + kFreezeTimeout <= look.now) {
    return {
        JobSuspended{.id = job.id, .suspended = false, .why = WhyNotFrozen(look, pausing.front())}};
  }
  TaskList running = TasksWhere(job, [](const Task& task) {
    const bool goes_on = task.pause == PauseState::kRuns || task.pause == PauseState::kResuming;
    return task.state == TaskState::kRunning && goes_on;
  });
  if (running.empty()) return {};
  const Time until = IsPaused(job.status) ? pause.until : look.now + look.parameters.longest_pause;
  return {TasksPaused{.job = job.id, .tasks = std::move(running), .until = until}};
}

}  // namespace

bool StaysPaused(const Look& look) {
  const JobStatus& status = look.job.status;
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  return placed && status.suspended && status.pause.wanted && look.now < status.pause.until;
}

Step PauseOrResume(const Look& look) {
  const Job& job = look.job;
  if (StaysPaused(look)) return Freeze(look);
  if (!IsPaused(job.status)) return {};
  if (TaskList tasks = InPause(job, PauseState::kPausing); !tasks.empty()) {
    return {TasksResumed{.job = job.id, .tasks = std::move(tasks)}};
  }
  if (TaskList tasks = InPause(job, PauseState::kPaused); !tasks.empty()) {
    return {TasksResumed{.job = job.id, .tasks = std::move(tasks), .waits = true}};
  }
  if (!NonePaused(job)) return {};
  // Those that were frozen have ended, and others go on.
  return {WithStatus(look, [&](JobStatus& status) { status = ResumedClock(status, look.now); })};
}

}  // namespace berth
