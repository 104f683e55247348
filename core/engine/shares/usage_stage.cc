#include "core/engine/shares/usage_stage.h"

#include <algorithm>

namespace berth {
namespace {

constexpr int64_t kChargesPerHalfLife = 64;

// Nothing is held and no past usage is left, so no queue is charged for this time. If a job may
// start now, the clock starts now, before anything is held. So a cycle that was cut does not later
// make a charge that the whole cycle would not have made.
bool Idle(const ClusterState& state) {
  const Queue& root = state.queues().At(kRootQueue);
  return root.usage.empty() && root.allocated.IsZero() && state.pending().ready_count() == 0;
}

// Since the last charge. If no queue had any usage, none was charged either, and what is held now
// was not held all that time: then one period at most.
Duration Elapsed(const ClusterState& state, const FairShareParameters& parameters, Time now) {
  const Duration since = now - state.usage_charged();
  const bool fresh =
      state.queues().At(kRootQueue).usage.empty() || state.usage_charged() == absl::InfinitePast();
  return fresh ? std::min(since, ChargePeriod(parameters)) : since;
}

}  // namespace

Duration ChargePeriod(const FairShareParameters& parameters) {
  return std::max(parameters.half_life / kChargesPerHalfLife, absl::Seconds(1));
}

Time NextCharge(const ClusterState& state, const FairShareParameters& parameters) {
  if (parameters.half_life <= absl::ZeroDuration() || Idle(state)) return absl::InfiniteFuture();
  return state.usage_charged() + ChargePeriod(parameters);
}

void ChargeUsage(Cycle& cycle) {
  const FairShareParameters& parameters = cycle.policies().fair_share();
  const ClusterState& state = cycle.state();
  if (NextCharge(state, parameters) > cycle.now()) return;
  cycle.transaction().Decide(UsageCharged{.elapsed = Elapsed(state, parameters, cycle.now()),
                                          .half_life = parameters.half_life});
}

}  // namespace berth
