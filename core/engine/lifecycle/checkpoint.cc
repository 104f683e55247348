// The request to save its work that a job gets before its walltime is used up. Its tasks go on; the
// Timeout event follows at the end of the walltime, or when all tasks have saved and ended.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"

namespace berth {

bool Saved(const Job& job, const Task& task) {
  const bool asked = job.status.checkpoint_asked != absl::InfinitePast() &&
                     job.status.checkpoint_asked >= task.start;
  if (!asked || task.state != TaskState::kFailed || task.end_cause != EndCause::kExit) return false;
  return std::binary_search(job.saved_exit_codes.begin(), job.saved_exit_codes.end(),
                            ExitCode(task));
}

Step AskCheckpoint(const Look& look) {
  const Job& job = look.job;
  const JobStatus& status = job.status;
  const bool asks = status.state == JobState::kRunning && job.walltime_notice > Duration() &&
                    status.checkpoint_asked < status.start;
  if (!asks || look.now < status.start + job.walltime - job.walltime_notice) return {};
  return {WithStatus(look, [&](JobStatus& changed) { changed.checkpoint_asked = look.now; })};
}

}  // namespace berth
