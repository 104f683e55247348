#include "core/engine/lifecycle/requeue.h"

#include "core/engine/lifecycle/steps.h"

namespace berth {

Step RequeueOf(const ClusterState& state, const Job& job, const LifecycleParameters& parameters,
               Time now, const std::string& message) {
  const JobState at = job.status.state;
  if (at != JobState::kBinding && at != JobState::kRunning) return {};
  const Look look{.state = state, .job = job, .now = now, .parameters = parameters};
  return RestartJob(look, ReleaseReason::kRestart, message, absl::InfinitePast(),
                    job.status.retries, /*rerun_all=*/true);
}

}  // namespace berth
