// Why jobs are held: dependencies, start time, the user's hold, back-off.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

enum class Dependency : uint8_t { kMet, kOpen, kImpossible };

// A dependency that no longer exists was met: jobs are not deleted while a job that never started
// depends on them (ClusterState::Dependents).
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
  Step step;
  if (state != JobState::kPending) DropPlaces(look, &step);
  if (look.job.status.state == state) return step;
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    status.state = state;
    if (state == JobState::kPending) status.hold_until = look.now;  // it waits from now on
  }));
  return step;
}

// A restart is decided: tasks that failed in the meantime, for any cause, also run again.
Step RequeueFailed(const Look& look) {
  TaskList failed =
      TasksWhere(look.job, [](const Task& task) { return task.state == TaskState::kFailed; });
  if (failed.empty()) return {};
  return {TasksRequeued{.job = look.job.id, .tasks = std::move(failed)}};
}

// Some members are nominated and others are not, but the gang starts whole or not at all.
bool WaitsInPieces(const Look& look) {
  const Job& job = look.job;
  if (KeepsPlaces(job, look.now)) return false;
  return TallyOf(job).Nominated() > 0 && job.occupying == 0 && NeedsOf(job).gang;
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
  Step dropped;
  DropPlaces(look, &dropped);
  if (!dropped.empty() || look.job.occupying > 0) return dropped;
  return Enter(look, status.starts == 0 ? JobState::kHeld : JobState::kSuspended);
}

Step Admit(const Look& look) {
  const Job& job = look.job;
  // Everything had succeeded before a restart stopped the rest.
  if (!job.series && WorkersOf(job).Waiting() == 0) return CompleteIfDone(look);
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
  if (!open && job.status.state == JobState::kPending && WaitsInPieces(look)) {
    Step step;
    DropPlaces(look, &step);
    return step;
  }
  return Enter(look, open ? JobState::kHeld : JobState::kPending);
}

Step AwaitRestart(const Look& look) {
  if (Step step = RequeueFailed(look); !step.empty()) return step;
  if (look.job.occupying > 0 || look.job.status.hold_until > look.now) return {};
  // Tasks that succeeded while the rest was being stopped count only if their group is complete.
  if (TaskList again = SucceededToRerun(look.job); !again.empty()) {
    return {TasksRequeued{.job = look.job.id, .tasks = std::move(again)}};
  }
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kPending;
    status.hold_until = absl::InfinitePast();
    if (status.places_until > look.now) {
      status.places_until = look.now + look.parameters.restart_hold;
    }
    if (std::string whole = WholeIncident(look); !whole.empty()) status.message = std::move(whole);
  })};
}

}  // namespace berth
