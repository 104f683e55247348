#include <algorithm>
#include <map>
#include <utility>

#include "core/model/apply_internal.h"
#include "core/model/drains.h"
#include "core/model/pauses.h"
#include "core/model/release.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

bool MayReport(TaskState state, ReportState report) {
  switch (report) {
    case ReportState::kPrepared:
      return state == TaskState::kBound;
    case ReportState::kRunning:  // a gang of one starts without a separate decision
      return state == TaskState::kBound || state == TaskState::kPrepared ||
             state == TaskState::kStarting;
    case ReportState::kRefused:
      return state == TaskState::kBound || state == TaskState::kPrepared ||
             state == TaskState::kStarting || state == TaskState::kReleasing;
    case ReportState::kExited:
      return Occupies(state) && state != TaskState::kLost;
    case ReportState::kPaused:
      return state == TaskState::kRunning;
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
    case ReportState::kPaused:
      return "paused";
  }
  return "?";
}

// A node on which a task starts to run is considered healthy again. A prepared task proves little:
// prolog, control group and namespaces come later.
bool ShowsNodeWell(const TaskReported& report) {
  return report.state == (report.trust_at_running ? ReportState::kRunning : ReportState::kPrepared);
}

// It ended as a task does that saved its work when asked to: before it is stopped, before the
// walltime ends, or because it must leave its node.
bool Saves(const ClusterState& state, const Job& job, const TaskReported& report) {
  if (job.saved_exit_codes.empty() || report.state != ReportState::kExited) return false;
  const bool says_so = std::binary_search(job.saved_exit_codes.begin(), job.saved_exit_codes.end(),
                                          report.exit_code);
  if (report.exit_signal != 0 || !says_so) return false;
  const Task& task = job.tasks[report.task.task];
  return Releasing(task) || AskedToSave(job, task) ||
         AskedByDrain(state, job, report.task.task) != absl::InfiniteFuture();
}

void ForgetRefusals(StateEditor& editor, const Node& node) {
  if (node.status.refusals == 0) return;
  NodeStatus status = node.status;
  status.refusals = status.refused_jobs = 0;
  status.backoff_until = absl::InfinitePast();
  status.refusal.clear();
  editor.SetNodeStatus(node.id, std::move(status));
}

}  // namespace

absl::Status CheckTasks(const ClusterState& state, JobId id, std::vector<uint32_t> tasks,
                        const char* what, absl::FunctionRef<bool(TaskState)> allowed) {
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

namespace {

// Checks that the places are on known nodes that take tasks, and that no other task waits for their
// devices. Planning ensures that they become free.
absl::Status CheckPlaces(const ClusterState& state, const Job& job,
                         const std::vector<Placement>& places) {
  std::map<NodeId, DeviceUse> taken;
  for (const Placement& place : places) {
    const Node* node = state.nodes().Find(place.node);
    if (node == nullptr) return NotFound("no node ", place.node.value);
    if (!TakesTasks(node->status)) return Refused(NameOf(*node), " takes no tasks now");
    DeviceSet missing = place.devices;
    missing -= node->healthy;
    DeviceUse& reserved = taken.try_emplace(place.node, node->devices_reserved).first->second;
    const Task& task = job.tasks[place.task];
    const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, place.task)].shape);
    if (Reserves(task.state) && task.node == place.node) {
      reserved -= UseOf(*node, shape, task.devices);
    }
    const DeviceUse use = UseOf(*node, shape, place.devices);
    if (!missing.Empty() || !HasRoom(*node, reserved, use)) {
      return Refused(NameOf(*node), ": a device is missing, unhealthy or reserved by another task");
    }
    reserved += use;
  }
  return absl::OkStatus();
}

absl::Status CheckMoves(const ClusterState& state, const TasksReleased& event) {
  if (IsEviction(event.reason) && event.beneficiary == JobId{}) {
    return Invalid("an eviction must name its beneficiary");
  }
  if (event.moves_to.empty()) return absl::OkStatus();
  const Job& job = state.jobs().At(event.job);
  if (!event.requeue) return Invalid(NameOf(job), ": only requeued tasks move");
  for (const Placement& to : event.moves_to) {
    if (std::find(event.tasks.begin(), event.tasks.end(), to.task) == event.tasks.end()) {
      return Invalid(NameOf(job), ": task ", to.task, " moves and is not released");
    }
  }
  return CheckPlaces(state, job, event.moves_to);
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const TasksNominated& event, Time now) {
  std::vector<uint32_t> tasks;
  for (const Placement& place : event.placements) tasks.push_back(place.task);
  auto status = CheckTasks(state, event.job, std::move(tasks), "nominated", Waits);
  if (!status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  if (Ended(job.status.state) || job.status.suspended || job.status.cancelled) {
    return Refused(NameOf(job), " is not waiting for places");
  }
  if (status = CheckPlaces(state, job, event.placements); !status.ok()) return status;
  StateEditor editor(state);
  for (const Placement& place : event.placements) {  // first release their old places
    const Task& task = job.tasks[place.task];
    if (Reserves(task.state)) editor.SetTask({job.id, place.task}, UnnominatedTask(task, now));
  }
  for (const Placement& place : event.placements) {
    editor.SetTask({job.id, place.task}, NominatedTask(job.tasks[place.task], place, now));
  }
  if (event.claims) {
    for (const uint32_t task : TasksToClaim(job)) {
      editor.SetTask({job.id, task}, ClaimedTask(job.tasks[task]));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksUnnominated& event, Time now) {
  auto status = CheckTasks(state, event.job, event.tasks, "unnominated", Reserves);
  if (!status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, UnnominatedTask(job.tasks[index], now));
  }
  return absl::OkStatus();
}

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
  if (event.state == ReportState::kPaused && task.pause != PauseState::kPausing) {
    return Refused(TaskName(*job, index), " was not told to pause");
  }
  if (event.devices_lent && !MayLend(state, *job, index)) {
    return Refused(TaskName(*job, index),
                   " has no whole devices, or keeps them while it is paused");
  }
  StateEditor editor(state);
  if (ShowsNodeWell(event)) ForgetRefusals(editor, state.nodes().At(task.node));
  editor.SetTask(event.task, ReportedTask(task, event, Saves(state, *job, event), now));
  const bool tells = !Occupies(task.state) || event.state == ReportState::kPaused;
  if (tells) editor.SetTaskMessage(event.task, event.message);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksStarted& event, Time now) {
  const auto prepared = [](TaskState s) { return s == TaskState::kPrepared; };
  auto status = CheckTasks(state, event.job, event.tasks, "started", prepared);
  if (!status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (const uint32_t index : event.tasks) {
    if (!IsSpare(job.groups[GroupOf(job, index)])) continue;
    return Refused(TaskName(job, index), " is a spare: it does not start");
  }
  for (uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, StartedTask(job.tasks[index], now));
  }
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const TasksReleased& event, Time now) {
  auto status = CheckTasks(state, event.job, event.tasks, "released", Occupies);
  if (!status.ok()) return status;
  if (status = CheckMoves(state, event); !status.ok()) return status;
  StateEditor editor(state);
  const Job& job = state.jobs().At(event.job);
  for (uint32_t index : event.tasks) {
    editor.SetTask({event.job, index}, AfterRelease(state, event, index, now));
  }
  if (IsEviction(event.reason)) editor.SetJobStatus(event.job, Evicted(job.status, event, now));
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
