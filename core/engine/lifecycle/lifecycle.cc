#include "core/engine/lifecycle/lifecycle.h"

#include <initializer_list>
#include <utility>

#include "core/base/check.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/finished_run.h"
#include "core/model/pauses.h"

namespace berth {
namespace {

// Far above what any job needs. A job that needs more is a cycle among the rules, which is a bug.
constexpr int kMaxStepsPerLook = 64;

class Lifecycle {
 public:
  explicit Lifecycle(Cycle& cycle) : cycle_(cycle) {}

  void Run() {
    cycle_.transaction().editor().PassTime(cycle_.now());
    absl::btree_set<JobId> unsettled = cycle_.state().unsettled();
    for (JobId id : cycle_.state().paused_jobs()) {
      // What it does depends on its beneficiary.
      if (Yields(cycle_.state().jobs().At(id).status)) unsettled.insert(id);
    }
    for (JobId id : unsettled) {
      if (cycle_.BudgetSpent()) return cycle_.Cut();
      Settle(id);
      SettleDependencies(id);
    }
    cycle_.transaction().Sync();
  }

 private:
  void Settle(JobId id) {
    const Job* job = cycle_.state().jobs().Find(id);
    for (int steps = 0; job != nullptr && !deleted_.contains(id); ++steps) {
      cycle_.CountWork(1);
      Step step =
          NextStep({cycle_.state(), *job, cycle_.now(), cycle_.policies().lifecycle(),
                    JobId{first_job_.value + static_cast<uint64_t>(made_)}, made_, made_tasks_});
      if (step.empty()) break;
      BERTH_CHECK(steps < kMaxStepsPerLook);
      bool applied = true;
      for (EventBody& decision : step) applied = Decide(std::move(decision)) && applied;
      if (!applied) return;  // it stays unsettled: the next look is after that
    }
    cycle_.transaction().editor().Settle(id);
  }

  // A job that has started or ended no longer keeps its dependencies from being deleted.
  void SettleDependencies(JobId id) {
    const Job* job = cycle_.state().jobs().Find(id);
    if (job == nullptr || (job->status.starts == 0 && !Ended(job->status.state))) return;
    for (const JobDependency& dependency : job->dependencies) {
      const Job* before = cycle_.state().jobs().Find(dependency.job);
      if (before != nullptr && Ended(before->status.state)) Settle(dependency.job);
    }
  }

  // False: it takes effect only when applied, and the next step of the job comes after that.
  bool Decide(EventBody decision) {
    // The job still exists, and must not be deleted twice.
    const auto* deletion = std::get_if<JobDeleted>(&decision);
    if (deletion != nullptr && !deleted_.insert(deletion->id).second) return false;
    const auto* submitted = std::get_if<JobSubmitted>(&decision);
    if (submitted != nullptr) {
      ++made_;
      for (const GroupSpec& group : submitted->spec.groups) made_tasks_ += group.replicas;
    }
    const bool later = submitted != nullptr || deletion != nullptr ||
                       std::holds_alternative<JobCancelled>(decision) ||
                       std::holds_alternative<JobSuspended>(decision);
    const auto* changed = std::get_if<JobStatusChanged>(&decision);
    const bool ends = changed != nullptr && Ended(changed->status.state);
    const JobId job = ends ? changed->job : JobId{};
    cycle_.transaction().Decide(std::move(decision));
    if (ends && cycle_.policies().prediction().enabled) RecordRun(job);
    return !later;
  }

  void RecordRun(JobId id) {
    if (RunOf(cycle_.state().jobs().At(id)) <= absl::ZeroDuration()) return;
    cycle_.transaction().Decide(JobRunRecorded{id});
  }

  Cycle& cycle_;
  const JobId first_job_ = cycle_.state().next_job_id();
  int64_t made_ = 0;  // jobs, by series
  int64_t made_tasks_ = 0;
  absl::btree_set<JobId> deleted_;
};

// The step of the first part that has one.
Step FirstStep(std::initializer_list<Step (*)(const Look&)> parts, const Look& look) {
  for (const auto part : parts) {
    if (Step step = part(look); !step.empty()) return step;
  }
  return {};
}

}  // namespace

Step NextStep(const Look& look) {
  const JobStatus& status = look.job.status;
  if (look.job.series) return SeriesStep(look);
  if (Ended(status.state)) return Expire(look);
  if (status.state == JobState::kCompleting) return Finish(look);
  if (status.cancelled) return Conclude(look, JobState::kCancelled, status.message);
  if (Step step = FirstStep({LeaveUnfitPlaces, EndRefusals, EndAvoidance}, look); !step.empty())
    return step;
  if (Step step = EndAtRunLimit(look); !step.empty()) return step;
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  if (placed) {
    // Refusals before policies, because a refused start is no failure for a policy. Completion
    // after policies, because a failure that a policy handles is not an end.
    // What a drain made end is no failure either.
    if (Step step = FirstStep({AskCheckpoint, AnswerRefusals, ReplaceSaved, AvoidBadNodes,
                               ApplyPolicies, CompleteIfDone},
                              look);
        !step.empty()) {
      return step;
    }
  }
  if (status.suspended && !StaysPaused(look)) return Suspend(look);
  if (placed) {
    return FirstStep(
        {LeaveDraining, LeaveTainted, UseSpares, StartPrepared, ReachRunning, PauseOrResume}, look);
  }
  if (status.state == JobState::kRestarting) {
    return FirstStep({AvoidBadNodes, ApplyPolicies, GiveBackRetry, AwaitRestart}, look);
  }
  if (Step step = Admit(look); !step.empty()) return step;
  if (status.state != JobState::kPending) return {};
  return FirstStep({ApplyPolicies, UseSpares}, look);
}

void RunLifecycle(Cycle& cycle) { Lifecycle(cycle).Run(); }

}  // namespace berth
