// Spares: places that a job holds in reserve, each by a task that is prepared and never starts.
//
// A task that waits for a place takes that of a spare of its group: the spare gives it up, and the
// task is nominated there. The spare's own index then waits for another place, like any task beyond
// the minimum. So names, ranks and the world of the gang stay as they are.
//
//   gang of 4 on n0..n3, one spare on n4; n2 dies
//   - n2 is fenced: the gang restarts in place; all but worker-2 keep their places, the spare too
//   - all have stopped: worker-2 gets n4, the gang is bound and starts in one epoch
//   - later the spare is bound to another node, when there is one
//
// A rigid group that restarts beside others, which go on, gets all its places anew and at once: its
// spares give theirs up before that.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"
#include "core/model/taints.h"

namespace berth {
namespace {

bool HoldsInReserve(const Task& task) {
  return task.state == TaskState::kBound || task.state == TaskState::kPrepared;
}

bool CanGive(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (IsKeptOut(look.job.status, task.node)) return false;
  return (HoldsInReserve(task) || Reserves(task.state)) &&
         IsFitPlace(look, index, task.node, task.devices);
}

TaskList TasksWith(const Group& group, absl::FunctionRef<bool(uint32_t)> test) {
  TaskList tasks;
  const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
  for (uint32_t i = group.first_task; i < end; ++i) {
    if (test(i)) tasks.push_back(i);
  }
  return tasks;
}

struct Swaps {
  TaskList unnominated, released;  // spares
  std::vector<Placement> places;   // of tasks that get theirs
};

bool RestartsBeside(const Job& job, const Group& group) {
  return group.replicas > 1 && MembershipOf(group) == GangMembership::kRigid &&
         job.status.state != JobState::kPending;
}

// Once the whole group waits.
void ReleaseSpares(const Job& job, const Group& spare, Swaps* swaps) {
  const GroupTally& tally = job.tallies[*spare.spare_of];
  if (tally.Waiting() < job.groups[*spare.spare_of].replicas) return;
  const TaskList held = TasksWith(spare, [&](uint32_t i) { return HoldsInReserve(job.tasks[i]); });
  swaps->released.insert(swaps->released.end(), held.begin(), held.end());
}

void AddSwaps(const Look& look, const Group& spare, Swaps* swaps) {
  const Job& job = look.job;
  const Group& group = job.groups[*spare.spare_of];
  if (RestartsBeside(job, group)) return ReleaseSpares(job, spare, swaps);
  TaskList waiting =
      TasksWith(group, [&](uint32_t i) { return job.tasks[i].state == TaskState::kPending; });
  if (waiting.empty()) return;
  // First those that cannot return to where they were. When a node dies, others of the gang often
  // fail by themselves before it is lost.
  std::stable_partition(waiting.begin(), waiting.end(), [&](uint32_t i) {
    return !IsFitPlace(look, i, job.tasks[i].node, job.tasks[i].devices);
  });
  const TaskList spares = TasksWith(spare, [&](uint32_t i) { return CanGive(look, i); });
  for (size_t i = 0; i < std::min(waiting.size(), spares.size()); ++i) {
    const Task& gives = job.tasks[spares[i]];
    (Reserves(gives.state) ? swaps->unnominated : swaps->released).push_back(spares[i]);
    swaps->places.push_back({.task = waiting[i], .node = gives.node, .devices = gives.devices});
  }
}

}  // namespace

Step UseSpares(const Look& look) {
  Swaps swaps;
  for (uint32_t g = 0; g < look.job.groups.size(); ++g) {
    const Group& group = look.job.groups[g];
    if (IsSpare(group) && GroupOpen(look.job, *group.spare_of)) AddSwaps(look, group, &swaps);
  }
  Step step;
  if (!swaps.unnominated.empty()) {
    step.push_back(TasksUnnominated{.job = look.job.id, .tasks = std::move(swaps.unnominated)});
  }
  if (!swaps.released.empty()) {
    step.push_back(TasksReleased{.job = look.job.id,
                                 .tasks = std::move(swaps.released),
                                 .requeue = true,
                                 .reason = ReleaseReason::kRestart});
  }
  if (!swaps.places.empty()) {
    step.push_back(TasksNominated{.job = look.job.id, .placements = std::move(swaps.places)});
  }
  return step;
}

}  // namespace berth
