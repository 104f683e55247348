// Starting gangs.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

bool Started(const GroupTally& tally) {
  return tally.In(TaskState::kStarting) + tally.In(TaskState::kRunning) > 0;
}

// Prepared tasks of a running job: a running group starts them one by one; another group starts
// together.
bool MayStart(const Job& job, uint32_t group) {
  const GroupTally& tally = job.tallies[group];
  if (Started(tally)) return true;
  // Tasks that ended and were not requeued are not waited for.
  const int32_t ready = tally.In(TaskState::kPrepared) + tally.In(TaskState::kSucceeded) +
                        tally.In(TaskState::kFailed);
  return tally.In(TaskState::kBound) == 0 && ready >= job.groups[group].min_available;
}

TaskList PreparedOf(const Job& job, bool whole_gang) {
  TaskList tasks;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g]) || job.tallies[g].In(TaskState::kPrepared) == 0) continue;
    if (!whole_gang && !MayStart(job, g)) continue;
    const uint32_t first = job.groups[g].first_task;
    for (uint32_t i = first; i < first + static_cast<uint32_t>(job.groups[g].replicas); ++i) {
      if (job.tasks[i].state == TaskState::kPrepared) tasks.push_back(i);
    }
  }
  return tasks;
}

// A task on a silent node that is not known to run: if the node returns, it starts with the gang.
bool AnyLostOnTheWay(const Job& job, const GroupTally& tally) {
  if (tally.In(TaskState::kLost) == 0) return false;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool lost = task.state == TaskState::kLost && Holds(task);
    if (!lost || task.before_lost == TaskState::kRunning) continue;
    if (!IsSpare(job.groups[GroupOf(job, i)])) return true;
  }
  return false;
}

// The walltime begins with the first member's start.
Time FirstStart(const Look& look) {
  Time first = look.now;
  for (const Task& task : look.job.tasks) {
    if (task.state == TaskState::kRunning) first = std::min(first, task.start);
  }
  return first;
}

}  // namespace

// The gang starts when every member has answered; a member on a silent node has not.
Step StartPrepared(const Look& look) {
  const GroupTally tally = StartersOf(look.job);
  if (tally.In(TaskState::kPrepared) == 0) return {};
  const bool whole_gang = look.job.status.state == JobState::kBinding;
  if (whole_gang && (tally.In(TaskState::kBound) > 0 || tally.In(TaskState::kLost) > 0)) return {};
  TaskList tasks = PreparedOf(look.job, whole_gang);
  if (tasks.empty()) return {};
  return {TasksStarted{.job = look.job.id, .tasks = std::move(tasks)}};
}

Step ReachRunning(const Look& look) {
  if (look.job.status.state != JobState::kBinding) return {};
  const GroupTally tally = StartersOf(look.job);
  const int32_t on_the_way =
      tally.In(TaskState::kBound) + tally.In(TaskState::kPrepared) + tally.In(TaskState::kStarting);
  if (on_the_way > 0 || AnyLostOnTheWay(look.job, tally)) return {};
  // All members were released before anything started, so binding continues.
  const int32_t gone = tally.Waiting() + tally.In(TaskState::kReleasing);
  if (gone == tally.All()) return {};
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kRunning;
    status.start = FirstStart(look);
    // Only who needs it: an older version, which follows this one, does not write it.
    const bool limited = look.job.run_limit != absl::InfiniteDuration();
    if (limited && status.first_start == absl::InfinitePast()) status.first_start = status.start;
    status.refusals = {};
  })};
}

}  // namespace berth
