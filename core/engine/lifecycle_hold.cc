// Jobs that are kept from running: dependencies, start time, the user's hold, back-off.
#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle_steps.h"

namespace berth {
namespace {

enum class Dependency : uint8_t { kMet, kOpen, kImpossible };

// A job that no longer exists was met: jobs are not deleted while one that never started depends on
// them (ClusterState::Dependents).
Dependency Judge(const Look& look, const JobDependency& dependency) {
  const Job* before = look.state.jobs().Find(dependency.job);
  if (before == nullptr) return Dependency::kMet;
  if (!Ended(before->status.state)) return Dependency::kOpen;
  const bool ok = before->status.state == JobState::kSucceeded;
  switch (dependency.condition) {
    case DependencyCondition::kAfterAny:
      return Dependency::kMet;
    case DependencyCondition::kAfterOk:
      return ok ? Dependency::kMet : Dependency::kImpossible;
    case DependencyCondition::kAfterNotOk:
      return ok ? Dependency::kImpossible : Dependency::kMet;
  }
  return Dependency::kOpen;
}

std::string WhyImpossible(const Look& look, const JobDependency& dependency) {
  const Job& before = look.state.jobs().At(dependency.job);
  const char* how = before.status.state == JobState::kSucceeded ? " succeeded"
                    : before.status.state == JobState::kFailed  ? " failed"
                                                                : " was cancelled";
  return absl::StrCat("cannot start any more: job ", before.name, how);
}

Step Enter(const Look& look, JobState state) {
  if (look.job.status.state == state) return {};
  return {WithStatus(look, [state](JobStatus& status) { status.state = state; })};
}

// A restart is decided: what failed meanwhile, with whatever cause, runs again with the rest.
Step RequeueFailed(const Look& look) {
  TaskList failed =
      TasksWhere(look.job, [](const Task& task) { return task.state == TaskState::kFailed; });
  if (failed.empty()) return {};
  return {TasksRequeued{.job = look.job.id, .tasks = std::move(failed)}};
}

}  // namespace

// Before its first start a job on hold is Held; one that has run before is Suspended.
Step Suspend(const Look& look) {
  const JobStatus& status = look.job.status;
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  if (placed) {
    return RestartJob(look, ReleaseReason::kSuspended, status.message, absl::InfinitePast(),
                      status.retries, /*rerun_all=*/false);
  }
  if (Step step = RequeueFailed(look); !step.empty()) return step;
  if (look.job.occupying > 0) return {};
  return Enter(look, status.starts == 0 ? JobState::kHeld : JobState::kSuspended);
}

Step Admit(const Look& look) {
  const Job& job = look.job;
  // Everything succeeded before a restart took the rest away.
  if (TallyOf(job).Waiting() == 0) return CompleteIfDone(look);
  bool open = job.start_after > look.now;
  if (job.status.starts == 0) {
    for (const JobDependency& dependency : job.dependencies) {
      const Dependency verdict = Judge(look, dependency);
      if (verdict == Dependency::kImpossible) {
        return Conclude(look, JobState::kFailed, WhyImpossible(look, dependency));
      }
      open = open || verdict == Dependency::kOpen;
    }
  }
  return Enter(look, open ? JobState::kHeld : JobState::kPending);
}

Step AwaitRestart(const Look& look) {
  if (Step step = RequeueFailed(look); !step.empty()) return step;
  if (look.job.occupying > 0 || look.job.status.hold_until > look.now) return {};
  return {WithStatus(look, [](JobStatus& status) {
    status.state = JobState::kPending;
    status.hold_until = absl::InfinitePast();
  })};
}

}  // namespace berth
