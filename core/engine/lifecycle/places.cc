// Places that a job waits for, and those that it keeps while it restarts.
//
// A restart releases each running task and nominates it at once for its own place (a move to where
// it is), so nobody else gets it. Once all have stopped, the job is Pending: what it lacks - the
// place of a task that failed, of a lost or draining node - is looked for like any need, and the
// gang is bound as a whole. After restart_hold it gives all up, and is placed anew.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"
#include "core/model/taints.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

bool Unfit(const Look& look, uint32_t task, NodeId id, const DeviceSet& devices) {
  const Node* node = look.state.nodes().Find(id);
  if (node == nullptr || !TakesTasks(node->status)) return true;
  if (TaintAgainst(look, task, *node) != nullptr) return true;
  DeviceSet missing = devices;
  missing -= node->healthy;
  return !missing.Empty();
}

}  // namespace

bool IsFitPlace(const Look& look, uint32_t task, NodeId node, const DeviceSet& devices) {
  return !Unfit(look, task, node, devices);
}

namespace {

bool WaitsForUnfit(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (task.moves) return Unfit(look, index, task.next_node, task.next_devices);
  if (!Reserves(task.state)) return false;
  // A group that must wait for another again, because that one restarts, starts later than the
  // rest: it gets its places then.
  return !GroupOpen(look.job, GroupOf(look.job, index)) ||
         Unfit(look, index, task.node, task.devices);
}

// Why a task that no longer moves is told to stop again: as the first time, so that it keeps the
// signal and the grace of a checkpoint. The eviction that moved it is over with the move.
ReleaseReason ReasonWithoutMove(const Task& task) {
  const bool again = task.epoch > 0 && !IsEviction(task.released);
  return again ? task.released : ReleaseReason::kRestart;
}

// Gives up these places: nominations, and the destinations of tasks that move.
void GiveUpPlaces(const Look& look, const TaskList& tasks, Step* step) {
  TaskList nominated, moving;
  for (uint32_t task : tasks) (look.job.tasks[task].moves ? moving : nominated).push_back(task);
  if (!nominated.empty()) {
    step->push_back(TasksUnnominated{.job = look.job.id, .tasks = std::move(nominated)});
  }
  if (moving.empty()) return;
  const ReleaseReason reason = ReasonWithoutMove(look.job.tasks[moving.front()]);
  step->push_back(TasksReleased{
      .job = look.job.id, .tasks = std::move(moving), .requeue = true, .reason = reason});
}

// It waits for a place, or will once it is gone.
bool AnyWaits(const Look& look) {
  const GroupTally tally = TallyOf(look.job);
  return tally.Nominated() + tally.In(TaskState::kReleasing) + tally.In(TaskState::kLost) > 0;
}

// A group that follows another waits for it again: it cannot use its places at once.
bool MayRunAgain(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (!Holds(task) || task.state == TaskState::kLost) return false;
  if (!look.job.groups[GroupOf(look.job, index)].depends_on.empty()) return false;
  const Node& node = look.state.nodes().At(task.node);
  if (node.status.backoff_until > look.now) return false;
  if (IsKeptOut(look.job.status, task.node)) return false;
  return !Unfit(look, index, task.node, task.devices);
}

}  // namespace

// If one nominated place is lost, all are given up: a gang needs all of them, and growth gets
// another. A restart keeps the others.
Step LeaveUnfitPlaces(const Look& look) {
  if (!AnyWaits(look)) return {};
  TaskList unfit;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    if (WaitsForUnfit(look, i)) unfit.push_back(i);
  }
  Step step;
  if (unfit.empty()) return step;
  if (KeepsPlaces(look.job, look.now)) {
    GiveUpPlaces(look, unfit, &step);
  } else {
    DropPlaces(look, &step);
  }
  return step;
}

void DropPlaces(const Look& look, Step* step) {
  if (!AnyWaits(look)) return;
  GiveUpPlaces(
      look,
      TasksWhere(look.job, [](const Task& task) { return task.moves || Reserves(task.state); }),
      step);
}

void KeepPlaces(const Look& look, Step* step) {
  const Duration hold = look.parameters.restart_hold;
  JobStatus& status = std::get<JobStatusChanged>(step->back()).status;
  if (hold == absl::ZeroDuration() || status.hold_until > look.now + hold) return;
  bool any = false;
  for (EventBody& decision : *step) {
    auto* released = std::get_if<TasksReleased>(&decision);
    if (released == nullptr || !released->requeue) continue;
    for (uint32_t task : released->tasks) {
      if (!MayRunAgain(look, task)) continue;
      const Task& held = look.job.tasks[task];
      released->moves_to.push_back({.task = task, .node = held.node, .devices = held.devices});
      any = true;
    }
  }
  // Counted from when all have stopped.
  if (any) status.places_until = absl::InfiniteFuture();
}

}  // namespace berth
