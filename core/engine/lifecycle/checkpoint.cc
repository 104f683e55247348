// The request to save its work that a job gets before its walltime is used up. Its tasks go on; the
// Timeout event follows at the end of the walltime, or when all tasks have saved and ended.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"

namespace berth {

bool Saved(const Job& job, const Task& task) {
  const bool exited = task.state == TaskState::kFailed && task.end_cause == EndCause::kExit;
  if (!exited || !AskedToSave(job, task)) return false;
  return std::binary_search(job.saved_exit_codes.begin(), job.saved_exit_codes.end(),
                            ExitCode(task));
}

Step AskCheckpoint(const Look& look) {
  if (look.job.status.state != JobState::kRunning || look.now < CheckpointDue(look.job)) return {};
  return {WithStatus(look, [&](JobStatus& status) { status.checkpoint_asked = look.now; })};
}

}  // namespace berth
