#include <algorithm>
#include <utility>

#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

bool MayReport(TaskState state, ReportState report) {
  switch (report) {
    case ReportState::kPrepared:
      return state == TaskState::kBound;
    case ReportState::kRunning:  // a gang of one starts without a decision of its own
      return state == TaskState::kBound || state == TaskState::kPrepared ||
             state == TaskState::kStarting;
    case ReportState::kRefused:
      return state == TaskState::kBound || state == TaskState::kPrepared ||
             state == TaskState::kStarting || state == TaskState::kReleasing;
    case ReportState::kExited:
      return Occupies(state) && state != TaskState::kLost;
  }
  return false;
}

const char* ReportName(ReportState report) {
  switch (report) {
    case ReportState::kPrepared:
      return "prepared";
    case ReportState::kRefused:
      return "refused";
    case ReportState::kRunning:
      return "running";
    case ReportState::kExited:
      return "exited";
  }
  return "?";
}

// A node that prepares a task is well again.
void ForgetRefusals(StateEditor& editor, const Node& node) {
  if (node.status.refusals == 0) return;
  NodeStatus status = node.status;
  status.refusals = status.refused_jobs = 0;
  status.backoff_until = absl::InfinitePast();
  editor.SetNodeStatus(node.id, std::move(status));
}

// The tasks are of the job, each once and in a state that `allowed` accepts.
template <class Allowed>
absl::Status CheckTasks(const ClusterState& state, JobId id, std::vector<uint32_t> tasks,
                        const char* what, Allowed allowed) {
  const Job* job = state.jobs().Find(id);
  if (job == nullptr) return NotFound("no job ", id.value);
  if (tasks.empty()) return Invalid(NameOf(*job), ": no tasks to be ", what);
  std::sort(tasks.begin(), tasks.end());
  if (tasks.back() >= job->tasks.size()) {
    return NotFound(NameOf(*job), " has no task ", tasks.back());
  }
  const auto twice = std::adjacent_find(tasks.begin(), tasks.end());
  if (twice != tasks.end()) return Invalid(TaskName(*job, *twice), " is named twice");
  for (uint32_t index : tasks) {
    const TaskState now = job->tasks[index].state;
    if (!allowed(now)) {
      return Refused(TaskName(*job, index), " is ", NameOf(now), " and cannot be ", what);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TaskReported& event, Time now) {
  const Job* job = state.jobs().Find(event.task.job);
  if (job == nullptr) return NotFound("no job ", event.task.job.value);
  const uint32_t index = event.task.task;
  if (index >= job->tasks.size()) {
    return NotFound(NameOf(*job), " has no task ", index);
  }
  const Task& task = job->tasks[index];
  if (event.attempt != task.attempt || !Occupies(task.state)) {
    return Refused(TaskName(*job, index), ": attempt ", event.attempt, " is over; the latest is ",
                   task.attempt, ", ", NameOf(task.state));
  }
  if (!MayReport(task.state, event.state)) {
    return Refused(TaskName(*job, index), " is ", NameOf(task.state), " and cannot be reported ",
                   ReportName(event.state));
  }
  StateEditor editor(state);
  if (event.state == ReportState::kPrepared) {
    ForgetRefusals(editor, state.nodes().At(task.node));
  }
  editor.SetTask(event.task, ReportedTask(task, event, now));
  if (!Occupies(task.state)) editor.SetTaskMessage(event.task, event.message);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksStarted& event, Time now) {
  const auto prepared = [](TaskState s) { return s == TaskState::kPrepared; };
  auto status = CheckTasks(state, event.job, event.tasks, "started", prepared);
  if (!status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, StartedTask(job.tasks[index], now));
  }
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksReleased& event, Time now) {
  auto status = CheckTasks(state, event.job, event.tasks, "released", Occupies);
  if (!status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (uint32_t index : event.tasks) {
    Task task = ReleasedTask(job.tasks[index], event.requeue, now);
    // Kept on a node that will not say any more that it is gone: given up now.
    const bool unreachable = state.nodes().At(task.node).status.state == NodeState::kLost;
    if (unreachable) task = GoneTask(task, EndCause::kNodeLost, now);
    editor.SetTask({event.job, index}, task);
  }
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksRequeued& event, Time now) {
  const auto ended = [](TaskState s) { return Ended(s); };
  auto status = CheckTasks(state, event.job, event.tasks, "requeued", ended);
  if (!status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  if (Ended(job.status.state)) {
    return Refused(NameOf(job), " has ended: its tasks stay as they are");
  }
  StateEditor editor(state);
  for (uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, RequeuedTask(job.tasks[index], now));
  }
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
