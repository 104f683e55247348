// Tasks that are frozen, and that go on.
#include <algorithm>

#include "core/model/apply_internal.h"
#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

// The tasks run, without repeats, each in a state of pause that `allowed` accepts.
template <class Allowed>
absl::Status CheckPauses(const ClusterState& state, JobId id, std::vector<uint32_t> tasks,
                         const char* what, Allowed allowed) {
  if (auto status =
          CheckTasks(state, id, tasks, what, [](TaskState s) { return s == TaskState::kRunning; });
      !status.ok()) {
    return status;
  }
  const Job& job = state.jobs().At(id);
  for (const uint32_t index : tasks) {
    if (!allowed(job.tasks[index])) {
      return Refused(TaskName(job, index), " cannot be ", what, ": its pause is another");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRoom(const ClusterState& state, const TasksResumed& event) {
  const Job& job = state.jobs().At(event.job);
  ResumeRoom room(state);
  for (const uint32_t index : event.tasks) {
    if (!Frozen(job.tasks[index]) || room.Take(job, index)) continue;
    return Refused(TaskName(job, index), " cannot be resumed: others use its CPU or its devices");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TasksPaused& event, Time now) {
  auto status = CheckPauses(state, event.job, event.tasks, "paused", [](const Task& task) {
    return task.pause == PauseState::kRuns || task.pause == PauseState::kResuming;
  });
  if (!status.ok()) return status;
  if (event.beneficiary == event.job) return Invalid("a job cannot be paused for itself");
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (const uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, PausingTask(job.tasks[index]));
  }
  editor.SetJobStatus(event.job, StoppedClock(job.status, event, now));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksResumed& event, Time now) {
  auto status = CheckPauses(state, event.job, event.tasks, "resumed", [&](const Task& task) {
    if (event.waits) return task.pause == PauseState::kPaused;
    return task.pause == PauseState::kPausing || task.pause == PauseState::kResuming;
  });
  if (status.ok() && !event.waits) status = CheckRoom(state, event);
  if (!status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (const uint32_t index : event.tasks) {
    const Task& task = job.tasks[index];
    editor.SetTask({event.job, index}, event.waits ? ResumingTask(task) : ResumedTask(task));
    if (!event.waits) editor.SetTaskMessage({event.job, index}, "");
  }
  if (NonePaused(job)) editor.SetJobStatus(event.job, ResumedClock(job.status, now));
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
