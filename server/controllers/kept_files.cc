#include "server/controllers/kept_files.h"

#include <algorithm>

#include "core/model/job.h"
#include "core/model/task.h"

namespace berth {
namespace {

bool IsOrGoes(const Task& task, NodeId node) {
  if (task.moves && task.next_node == node) return true;
  return task.node == node && (Occupies(task.state) || Reserves(task.state));
}

// It was told to make room, not to start again.
bool WasSentAway(const Task& task) {
  if (task.end_cause != EndCause::kStopped) return false;
  return IsEviction(task.released) || task.released == ReleaseReason::kSuspended ||
         task.released == ReleaseReason::kDrain || task.released == ReleaseReason::kGangExpired;
}

// A task that failed, or was stopped for a restart, mostly gets its place again.
bool MayComeBack(const Task& task, NodeId node, Time now) {
  const bool was_here = task.attempt > 0 && task.node == node;
  const bool waits = task.state == TaskState::kPending || task.state == TaskState::kFailed;
  return was_here && waits && now < task.since + kKeptForRestart && !WasSentAway(task);
}

bool AnyComesBack(const Job& job, NodeId node, Time now) {
  if (Ended(job.status.state)) return false;
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return IsOrGoes(task, node) || MayComeBack(task, node, now);
  });
}

}  // namespace

v1::DropFiles FilesToDrop(const ClusterState& state, NodeId node, const v1::KeptFiles& kept,
                          Time now) {
  v1::DropFiles drop;
  for (const uint64_t uid : kept.job_uids()) {
    const Job* job = state.jobs().Find(JobId{uid});
    if (job == nullptr || !AnyComesBack(*job, node, now)) drop.add_job_uids(uid);
  }
  return drop;
}

}  // namespace berth
