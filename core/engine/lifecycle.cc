#include "core/engine/lifecycle.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/engine/lifecycle_steps.h"

namespace berth {
namespace {

// Far above what any job needs; a job that goes on is a cycle among the rules, our own bug.
constexpr int kMaxStepsPerLook = 64;

bool Deletes(const Step& step) { return std::holds_alternative<JobDeleted>(step.back()); }

void SettleJob(Cycle& cycle, JobId id) {
  const Job* job = cycle.state().jobs().Find(id);
  int steps = 0;
  while (job != nullptr) {
    cycle.CountWork(1);
    const Look look{cycle.state(), *job, cycle.now(), cycle.policies().lifecycle()};
    Step step = NextStep(look);
    if (step.empty()) break;
    BERTH_CHECK(++steps <= kMaxStepsPerLook);
    const bool deletes = Deletes(step);
    for (EventBody& decision : step) cycle.transaction().Decide(std::move(decision));
    if (deletes) break;
  }
  cycle.transaction().editor().Settle(id);
}

// A job that has started or ended no longer keeps those that it depended on from being deleted.
void SettleDependencies(Cycle& cycle, JobId id) {
  const Job* job = cycle.state().jobs().Find(id);
  if (job == nullptr || (job->status.starts == 0 && !Ended(job->status.state))) return;
  for (const JobDependency& dependency : job->dependencies) {
    const Job* before = cycle.state().jobs().Find(dependency.job);
    if (before != nullptr && Ended(before->status.state)) SettleJob(cycle, dependency.job);
  }
}

Step FirstOf(std::initializer_list<Step (*)(const Look&)> parts, const Look& look) {
  for (const auto part : parts) {
    if (Step step = part(look); !step.empty()) return step;
  }
  return {};
}

}  // namespace

Step NextStep(const Look& look) {
  const JobStatus& status = look.job.status;
  if (Ended(status.state)) return Expire(look);
  if (status.state == JobState::kCompleting) return Finish(look);
  if (status.cancelled) return Conclude(look, JobState::kCancelled, status.message);
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  if (placed) {
    // Blame before policies: what a node refused is no failure of the job. Completion after them: a
    // failure that a policy answers is not an end.
    if (Step step = FirstOf({BlameNodes, ApplyPolicies, CompleteIfDone}, look); !step.empty()) {
      return step;
    }
  }
  if (status.suspended) return Suspend(look);
  if (placed) return FirstOf({LeaveDraining, StartPrepared, ReachRunning}, look);
  return status.state == JobState::kRestarting ? AwaitRestart(look) : Admit(look);
}

void RunLifecycle(Cycle& cycle) {
  cycle.transaction().editor().PassTime(cycle.now());
  const absl::btree_set<JobId> unsettled = cycle.state().unsettled();
  for (JobId id : unsettled) {
    if (cycle.SpentUp()) return cycle.Cut();
    SettleJob(cycle, id);
    SettleDependencies(cycle, id);
  }
  cycle.transaction().Sync();
}

}  // namespace berth
