// The usage stage: charges queues for what they hold (UsageCharged), so that fair shares know the
// past. Runs where fair_share.half_life is set.
#ifndef BERTH_CORE_ENGINE_USAGE_STAGE_H_
#define BERTH_CORE_ENGINE_USAGE_STAGE_H_

#include "core/engine/cycle.h"

namespace berth {

// Usage is charged at most once in half_life / 64, at least a second: an error of at most 1.1 % of
// what changed in between, for few writes.
Duration ChargePeriod(const FairShareParameters& parameters);

// When the next charge is due; InfiniteFuture if there is nothing to charge: no half-life, or
// nothing is held, about to be, or left of the past.
Time NextCharge(const ClusterState& state, const FairShareParameters& parameters);

// Decides for the charge that is due, if one is. After the lifecycle stage, which says what is
// ready to start, and before fair shares are asked for.
void ChargeUsage(Cycle& cycle);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_USAGE_STAGE_H_
