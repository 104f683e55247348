// A task or a gang that runs and makes no progress (JobStatus::hang). Its tasks are asked for their
// stacks first; what they do then, which may be to end, is part of the hang. After dump_wait, or
// when all of them have ended, the policy for TASK_HUNG applies.
#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

bool AnyWritesStacks(const Job& job) {
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state == TaskState::kRunning && HangsWith(job, i)) return true;
  }
  return false;
}

}  // namespace

bool AwaitsStacks(const Look& look) {
  if (!Hangs(look.job)) return false;
  const Time due = look.job.status.hang.time + look.job.dump_wait;
  return look.now < due && AnyWritesStacks(look.job);
}

std::string HowItHangs(const Look& look) {
  const Hang& hang = look.job.status.hang;
  const std::string where = hang.step < 0 ? "" : absl::StrCat(", at step ", hang.step);
  return absl::StrCat(TaskLabel(look.job, hang.task), " hangs", OnNode(look, hang.task),
                      ": no progress for ",
                      absl::FormatDuration(absl::Trunc(hang.still, absl::Seconds(1))), where);
}

}  // namespace berth
