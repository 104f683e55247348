// How jobs end.
#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

ReleaseReason ReasonOf(JobState outcome) {
  switch (outcome) {
    case JobState::kCancelled:
      return ReleaseReason::kCancelled;
    case JobState::kSucceeded:
      return ReleaseReason::kCompleted;
    default:
      return ReleaseReason::kFailed;
  }
}

// Failures that a policy ignores do not count if the minimum succeeded.
bool EnoughSucceeded(const Job& job) {
  if (job.min_success > 0) return false;
  int32_t succeeded = 0;
  int32_t least = job.min_available;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    if (job.groups[g].coordinator) {
      least -= job.groups[g].min_available;
      continue;
    }
    if (IsSpare(job.groups[g])) continue;
    const int32_t of_group = job.tallies[g].In(TaskState::kSucceeded);
    if (of_group < job.groups[g].min_available) return false;
    succeeded += of_group;
  }
  return succeeded >= least;
}

// All pending tasks wait for a group that has ended and can no longer meet their condition.
bool NeverProceeds(const Job& job) {
  if (!job.status.delayed.empty()) return false;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const bool waits = job.tallies[g].Waiting() > 0 && HasRanks(job.groups[g]);
    if (waits && GroupOpen(job, g)) return false;
  }
  return true;
}

}  // namespace

Step Expire(const Look& look) {
  const JobStatus& status = look.job.status;
  const bool due = status.end + look.job.ttl_after_finished <= look.now;
  // Jobs that depend on its outcome must be able to read it.
  if (!due || !look.state.Dependents(look.job.id).empty()) return {};
  return {JobDeleted{.id = look.job.id}};
}

Step Finish(const Look& look) {
  const JobStatus& status = look.job.status;
  if (look.job.occupying == 0) return Conclude(look, status.outcome, status.message);
  // Including tasks that were to be requeued: nothing runs again.
  TaskList stop = TasksWhere(look.job, [](const Task& task) {
    return Holds(task) || (Occupies(task.state) && task.requeue);
  });
  if (stop.empty()) return {};
  return {TasksReleased{.job = look.job.id,
                        .tasks = std::move(stop),
                        .requeue = false,
                        .reason = ReasonOf(status.outcome)}};
}

Step EndAtRunLimit(const Look& look) {
  const Job& job = look.job;
  if (job.status.first_start == absl::InfinitePast() || IsPaused(job.status)) return {};
  if (job.status.first_start + job.run_limit > look.now) return {};
  return Conclude(look, JobState::kFailed,
                  absl::StrCat("its run_limit of ", absl::FormatDuration(job.run_limit),
                               " since its first start is used up"));
}

// A coordinator has nothing to do without the others, nor have spares: they are stopped then, as
// the job ends.
Step CompleteIfDone(const Look& look) {
  const GroupTally tally = WorkersOf(look.job);
  if (look.job.min_success > 0 && tally.In(TaskState::kSucceeded) >= look.job.min_success) {
    return Conclude(look, JobState::kSucceeded, "");
  }
  if (tally.Occupying() > 0 || !NeverProceeds(look.job)) return {};
  if (tally.Waiting() > 0) {
    return Conclude(look, JobState::kFailed,
                    "a group waits for a condition of another group that can no longer be met");
  }
  if (EnoughSucceeded(look.job)) return Conclude(look, JobState::kSucceeded, "");
  return Conclude(look, JobState::kFailed,
                  absl::StrCat(tally.In(TaskState::kFailed), " of ", look.job.tasks.size(),
                               " tasks failed, fewer than the minimum succeeded"));
}

}  // namespace berth
