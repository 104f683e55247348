// What the loss or restart of one task means for the other tasks of its job.
//
//   group                    one task is restarted or lost
//   rigid                    all tasks of rigid groups that were bound in the same epoch restart:
//                            the group, or the job if they are of several groups or all it has
//   rendezvous               that task alone; the job, if it hosts the rendezvous
//   independent              that task alone
//   coordinator              the job
#include <algorithm>

#include "core/engine/lifecycle/steps.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

bool IsRigid(const Group& group) { return MembershipOf(group) == GangMembership::kRigid; }

// The groups that share a rigid world with the task, which is in a rigid group.
std::vector<uint32_t> RigidGroups(const Job& job, uint32_t task) {
  std::vector<uint32_t> groups;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    if (!IsRigid(group) || group.coordinator) continue;
    const bool own = g == GroupOf(job, task);
    if (!own && job.tallies[g].In(TaskState::kSucceeded) == group.replicas) continue;
    // All its tasks were bound at once.
    if (own || job.tasks[group.first_task].epoch == job.tasks[task].epoch) groups.push_back(g);
  }
  return groups;
}

bool HasOthers(const Job& job, uint32_t group) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const bool waits_or_runs = job.tallies[g].Occupying() + job.tallies[g].Waiting() > 0;
    if (g != group && HasRanks(job.groups[g]) && waits_or_runs) return true;
  }
  return false;
}

PolicyAction WidenInRigid(const Job& job, uint32_t task, PolicyAction action) {
  const uint32_t group = GroupOf(job, task);
  const std::vector<uint32_t> together = RigidGroups(job, task);
  if (together.size() > 1) return PolicyAction::kRestartJob;
  if (action == PolicyAction::kRestartGroup || job.groups[group].replicas == 1) return action;
  return HasOthers(job, group) ? PolicyAction::kRestartGroup : PolicyAction::kRestartJob;
}

// Declared, so that the job's minimum says nothing about whether the others can go on.
bool DeclaredApart(const Group& group) {
  return group.membership == GangMembership::kRendezvous ||
         group.membership == GangMembership::kIndependent;
}

}  // namespace

bool HostsRendezvous(const Job& job, uint32_t task) {
  if (job.groups[GroupOf(job, task)].coordinator) return true;
  if (job.tasks[task].rank != 0 || HasCoordinator(job)) return false;
  // Whatever its own group is: those of the others meet there.
  return std::any_of(job.groups.begin(), job.groups.end(), [](const Group& group) {
    return group.membership == GangMembership::kRendezvous;
  });
}

bool Replaceable(const Job& job, const TaskList& tasks) {
  bool apart = true;
  for (uint32_t task : tasks) {
    if (HostsRendezvous(job, task)) return false;
    apart = apart && DeclaredApart(job.groups[GroupOf(job, task)]);
  }
  return apart || KeepsMinimum(job, tasks);
}

PolicyAction WidenForGang(const Job& job, uint32_t task, PolicyAction action) {
  const bool partial = action == PolicyAction::kRestartTask ||
                       action == PolicyAction::kRestartPartition ||
                       action == PolicyAction::kRestartGroup;
  if (!partial) return action;
  if (HostsRendezvous(job, task)) return PolicyAction::kRestartJob;
  const Group& group = job.groups[GroupOf(job, task)];
  return IsRigid(group) ? WidenInRigid(job, task, action) : action;
}

}  // namespace berth
