// Pauses. A job that runs keeps its places: its tasks are frozen where they are (JobStatus::pause),
// not stopped. While they are frozen, others may use their CPU, and their devices if the job lends
// these, and the job's clock stands still.
//
// Because its user holds it:
//   running  -JobSuspended, freeze-> TasksPaused -reported-> paused
//   paused   -JobSuspended off-> TasksResumed, waits -> TasksResumed, once that is free
//   paused too long, or stopped by the user: as any job on hold (hold.cc)
//
// Because it makes room for another job, the beneficiary (core/actions/preempt.cc):
//   running  -TasksPaused, beneficiary -reported-> paused: the beneficiary is placed
//   paused   -the beneficiary has its places-> TasksResumed, waits -> as above
//   waits, and the beneficiary restarts and keeps its places -TasksPaused-> paused
//   it is the turn of the beneficiary, which is frozen: that one goes on first
//   paused too long, or not frozen in time: evicted for the beneficiary
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
                      " was not frozen within ", absl::FormatDuration(FreezeTimeout(look.job)));
}

Step Freeze(const Look& look) {
  const Job& job = look.job;
  const Pause& pause = job.status.pause;
  const TaskList pausing = InPause(job, PauseState::kPausing);
  if (!pausing.empty() && IsPaused(job.status) && pause.since + FreezeTimeout(job) <= look.now) {
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

std::string NameOfBeneficiary(const Look& look) {
  const JobId id = look.job.status.pause.beneficiary;
  const Job* job = look.state.jobs().Find(id);
  return job == nullptr ? absl::StrCat("uid ", id.value) : job->name;
}

// It was paused for another job, and now it is stopped for it.
Step Evict(const Look& look, const std::string& why) {
  const std::string message = absl::StrCat("evicted for job ", NameOfBeneficiary(look), ": ", why);
  Step step = RestartJob(look, ReleaseReason::kPreempted, message, absl::InfinitePast(),
                         look.job.status.retries, /*rerun_all=*/false);
  NoteEviction(look, /*whole=*/true, &step);
  for (EventBody& decision : step) {
    auto* released = std::get_if<TasksReleased>(&decision);
    if (released == nullptr) continue;
    released->beneficiary = look.job.status.pause.beneficiary;
    released->detail = why;
  }
  return step;
}

// The tasks go on once their CPU is free.
Step GoOn(const Look& look) {
  const Job& job = look.job;
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

// The same, and no gang goes on in pieces: the others are frozen first if some are.
Step GoOnTogether(const Look& look) {
  const TaskList frozen = TasksWhere(look.job, [](const Task& task) { return Frozen(task); });
  const bool some_pausing = !InPause(look.job, PauseState::kPausing).empty();
  return some_pausing && !frozen.empty() ? Step{} : GoOn(look);
}

// While the beneficiary waits for its places, nothing is reserved for the job there.
Step StandBack(const Look& look) {
  const Pause& pause = look.job.status.pause;
  TaskList tasks = InPause(look.job, PauseState::kResuming);
  if (tasks.empty()) return {};
  return {TasksPaused{.job = look.job.id,
                      .tasks = std::move(tasks),
                      .until = pause.until,
                      .beneficiary = pause.beneficiary,
                      .detail = pause.detail}};
}

// The beneficiary was promised devices of a task that is frozen with them: its node could not save
// what is there.
bool KeptPromisedDevices(const Look& look, const Job& beneficiary) {
  return std::any_of(look.job.tasks.begin(), look.job.tasks.end(), [&](const Task& task) {
    if (!Frozen(task) || task.devices_lent) return false;
    return std::any_of(beneficiary.tasks.begin(), beneficiary.tasks.end(), [&](const Task& other) {
      return other.state == TaskState::kNominated && other.node == task.node &&
             other.devices.Overlaps(task.devices);
    });
  });
}

Step MakeWay(const Look& look) {
  const Job& job = look.job;
  const Pause& pause = job.status.pause;
  const TaskList pausing = InPause(job, PauseState::kPausing);
  if (!pausing.empty() && pause.since + FreezeTimeout(job) <= look.now) {
    return Evict(look, WhyNotFrozen(look, pausing.front()));
  }
  if (pause.until <= look.now) {
    return Evict(look, absl::StrCat("it was paused for it for ",
                                    absl::FormatDuration(look.now - pause.since)));
  }
  const Job* beneficiary = look.state.jobs().Find(pause.beneficiary);
  if (beneficiary == nullptr) return GoOnTogether(look);
  if (KeptPromisedDevices(look, *beneficiary)) {
    return Evict(look, "what it has on its devices could not be saved");
  }
  if (AwaitsPlaces(*beneficiary)) return StandBack(look);
  // It is the other one's turn (core/actions/turns.h). One that waits already goes on waiting, as
  // several may have been paused for each other.
  if (AwaitsCpu(*beneficiary) && !AwaitsCpu(job)) return {};
  return GoOnTogether(look);
}

}  // namespace

bool StaysPaused(const Look& look) {
  const JobStatus& status = look.job.status;
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  // All its tasks may have left one by one, which does not change its state.
  return placed && look.job.occupying > 0 && status.suspended && status.pause.wanted &&
         look.now < status.pause.until;
}

Step PauseOrResume(const Look& look) {
  if (StaysPaused(look)) return Freeze(look);
  if (Yields(look.job.status)) return MakeWay(look);
  return IsPaused(look.job.status) ? GoOn(look) : Step{};
}

}  // namespace berth
