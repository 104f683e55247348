// What tasks reported about themselves: ready, checkpoints, hangs.
#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"

namespace berth::apply_internal {
namespace {

// The attempt is the task's latest, and runs.
absl::Status CheckRuns(const ClusterState& state, TaskKey key, uint32_t attempt) {
  const Job* job = state.jobs().Find(key.job);
  if (job == nullptr) return NotFound("no job ", key.job.value);
  if (key.task >= job->tasks.size()) return NotFound(NameOf(*job), " has no task ", key.task);
  const Task& task = job->tasks[key.task];
  const bool runs = task.state == TaskState::kRunning || task.state == TaskState::kReleasing;
  if (attempt == task.attempt && runs) return absl::OkStatus();
  return Refused(TaskName(*job, key.task), ": attempt ", attempt, " does not run; the latest is ",
                 task.attempt, ", ", NameOf(task.state));
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TaskReady& event, Time) {
  if (auto status = CheckRuns(state, event.task, event.attempt); !status.ok()) return status;
  Task task = state.jobs().At(event.task.job).tasks[event.task.task];
  task.ready = true;
  StateEditor(state).SetTask(event.task, task);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const CheckpointRecorded& event, Time now) {
  if (auto status = CheckRuns(state, event.task, event.attempt); !status.ok()) return status;
  const Job& job = state.jobs().At(event.task.job);
  if (event.step < 0 || event.bytes < 0) return Invalid(NameOf(job), ": a checkpoint below 0");
  Task task = job.tasks[event.task.task];
  task.saved = now;
  StateEditor editor(state);
  editor.SetTask(event.task, task);
  if (RunsAlone(job, event.task.task)) return absl::OkStatus();
  JobStatus changed = job.status;
  changed.checkpoint = {
      .time = now, .step = event.step, .bytes = event.bytes, .place = event.place};
  editor.SetJobStatus(event.task.job, std::move(changed));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TaskHung& event, Time now) {
  if (auto status = CheckRuns(state, event.task, event.attempt); !status.ok()) return status;
  const Job& job = state.jobs().At(event.task.job);
  const JobStatus& before = job.status;
  if (event.over != Hangs(job)) {
    return Refused(NameOf(job), event.over ? " does not hang" : " hangs already");
  }
  if (before.state != JobState::kRunning) {
    return Refused(NameOf(job), " is ", NameOf(before.state), " and cannot hang");
  }
  JobStatus changed = before;
  changed.hang = {};
  if (!event.over) {
    changed.hang = {.time = now,
                    .task = event.task.task,
                    .attempt = event.attempt,
                    .still = event.still,
                    .step = event.step};
  }
  StateEditor(state).SetJobStatus(event.task.job, std::move(changed));
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
