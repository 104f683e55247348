// The usage stage: charges queues for what they hold (UsageCharged), so that fair shares take the
// past into account. Runs if fair_share.half_life is set.
#ifndef BERTH_CORE_ENGINE_SHARES_USAGE_STAGE_H_
#define BERTH_CORE_ENGINE_SHARES_USAGE_STAGE_H_

#include "core/engine/cycle.h"

namespace berth {

// Usage is charged at most once per half_life / 64, and at most once per second: an error of at
// most 1.1 % of what changed in between, for few writes.
Duration ChargePeriod(const FairShareParameters& parameters);

// When the next charge is due; InfiniteFuture if there is nothing to charge: no half-life, or
// nothing is held, about to be held, or left of the past.
Time NextCharge(const ClusterState& state, const FairShareParameters& parameters);

// Decides the charge if one is due. Runs after the lifecycle stage, which decides what is ready to
// start, and before fair shares are used.
void ChargeUsage(Cycle& cycle);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SHARES_USAGE_STAGE_H_
