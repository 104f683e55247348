#include <algorithm>

#include "core/model/state_editor.h"

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

void ConsiderPrepareTimeouts(const Job& job, Earliest& earliest) {
  if (TallyOf(job).In(TaskState::kBound) == 0) return;
  for (const Task& task : job.tasks) {
    if (task.state == TaskState::kBound) earliest.Consider(task.since + job.prepare_timeout);
  }
}

}  // namespace

Time NextDue(const Job& job, Time after) {
  Earliest earliest(after);
  const JobStatus& status = job.status;
  if (Ended(status.state)) {
    earliest.Consider(status.end + job.ttl_after_finished);
    return earliest.first();
  }
  earliest.Consider(job.start_after);
  earliest.Consider(status.hold_until);
  earliest.Consider(status.refusals.until);
  if (status.state == JobState::kRunning) earliest.Consider(status.start + job.walltime);
  for (const DelayedAction& action : status.delayed) earliest.Consider(action.due);
  ConsiderPrepareTimeouts(job, earliest);
  return earliest.first();
}

}  // namespace berth
