#include "server/reads/waiting_jobs.h"

#include <optional>
#include <vector>

#include "core/engine/plan.h"
#include "core/model/cluster_state.h"

namespace berth {
namespace {

constexpr size_t kExplainedPerStep = 50;  // each makes texts for people

}  // namespace

std::array<int64_t, v1::WaitReason::Code_ARRAYSIZE> CountWaitingJobs(ReadView& view, Time now) {
  std::array<int64_t, v1::WaitReason::Code_ARRAYSIZE> counts{};
  size_t left = kMostWaitingJobs;
  JobId next{0};
  const auto look = [&](const ClusterState& state) {
    size_t explained = 0;
    for (size_t row = 0; row < kMaxRowsPerStep && explained < kExplainedPerStep; ++row) {
      const std::optional<JobId> id = state.jobs().NextFrom(next);
      if (!id.has_value() || left == 0) return false;
      next = JobId{id->value + 1};
      const Job& job = state.jobs().At(*id);
      if (job.status.state != JobState::kPending) continue;
      const std::vector<WaitReason> reasons = WhyWaiting(state, job, now);
      ++counts[static_cast<size_t>(reasons.empty() ? WaitCode::kNone : reasons.front().code)];
      ++explained;
      --left;
    }
    return true;
  };
  while (view.Step(look)) {
  }
  return counts;
}

}  // namespace berth
