#include "core/model/job_timer.h"

#include <algorithm>

#include "core/model/pauses.h"
#include "core/model/waiting.h"

namespace berth {
namespace {

// Collects the earliest time after `after`.
class Earliest {
 public:
  explicit Earliest(Time after) : after_(after) {}
  void Consider(Time due) {
    if (due > after_) first_ = std::min(first_, due);
  }
  Time first() const { return first_; }

 private:
  Time after_;
  Time first_ = absl::InfiniteFuture();
};

// From the last task on: tasks mostly report in order, so the last ones stay bound longest.
void ConsiderPrepareTimeouts(const Job& job, Time after, Time due_before, Earliest& earliest) {
  auto left = TallyOf(job).In(TaskState::kBound);
  for (size_t i = job.tasks.size(); i > 0 && left > 0; --i) {
    const Task& task = job.tasks[i - 1];
    if (task.state != TaskState::kBound) continue;
    --left;
    const Time due = task.since + job.prepare_timeout;
    earliest.Consider(due);
    if (due == due_before && due > after) return;
  }
}

void ConsiderWaits(const Job& job, Time after, Earliest& earliest) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g])) continue;
    const LifecyclePolicy* policy = PolicyOn(job, job.groups[g], PolicyEvent::kTaskPending);
    if (policy == nullptr || policy->action == PolicyAction::kIgnore) continue;
    earliest.Consider(NextWaitDue(job, g, policy->after, after));
  }
}

// An array that may make more jobs looks for room this often: nothing tells it that other jobs of
// its queues have ended, or that a queue was opened. On a grid, so that it does not depend on when
// it is asked.
constexpr Duration kLookForRoom = absl::Seconds(5);

bool WantsRoom(const Job& job) {
  if (!job.series || job.series->IsSchedule() || !job.status.series) return false;
  const SeriesStatus& series = *job.status.series;
  return job.status.state == JobState::kRunning && !job.status.suspended &&
         static_cast<int64_t>(series.live.size()) < job.series->parallelism &&
         series.next < CountOf(job.series->indexes);
}

Time NextLookForRoom(Time after) {
  if (after == absl::InfinitePast()) return absl::UnixEpoch();
  return absl::UnixEpoch() + absl::Floor(after - absl::UnixEpoch(), kLookForRoom) + kLookForRoom;
}

}  // namespace

Time NextDue(const Job& job, Time after) { return NextDue(job, after, absl::InfiniteFuture()); }

Time NextDue(const Job& job, Time after, Time due_before) {
  Earliest earliest(after);
  const JobStatus& status = job.status;
  if (Ended(status.state)) {
    earliest.Consider(status.end + job.ttl_after_finished);
    return earliest.first();
  }
  if (WantsRoom(job)) earliest.Consider(NextLookForRoom(after));
  if (job.series && status.series) earliest.Consider(status.series->due);
  earliest.Consider(job.start_after);
  if (status.first_start != absl::InfinitePast() && !IsPaused(status)) {
    earliest.Consider(status.first_start + job.run_limit);
  }
  earliest.Consider(status.hold_until);
  earliest.Consider(status.refusals.until);
  for (const AvoidedNode& avoided : status.avoided) earliest.Consider(avoided.until);
  if (status.state == JobState::kPending) earliest.Consider(status.places_until);
  if (status.state == JobState::kRunning) {
    earliest.Consider(WalltimeEnd(job));
    earliest.Consider(CheckpointDue(job));
    earliest.Consider(status.hang.time + job.dump_wait);
  }
  if (IsPaused(status)) {
    earliest.Consider(status.pause.until);
    earliest.Consider(status.pause.since + FreezeTimeout(job));
  }
  if (job.series) return earliest.first();
  for (const DelayedAction& action : status.delayed) earliest.Consider(action.due);
  ConsiderPrepareTimeouts(job, after, due_before, earliest);
  ConsiderWaits(job, after, earliest);
  return earliest.first();
}

}  // namespace berth
