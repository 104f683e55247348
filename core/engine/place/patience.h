// Patience: a job whose soft topology constraint prefers a tier that is not free now, but will be
// before its patience ends, waits for it.
//
//   preferred: one rack; now only a pod has room; patience 10 min, eligible since 4 min
//   a rack will be free in 5 min -> waits; in 7 min -> takes the pod
//
// Patience counts from when the job became eligible: its submit, start time, back-off, the end of
// its dependencies, or the last time that one of its tasks was requeued.
#ifndef BERTH_CORE_ENGINE_PLACE_PATIENCE_H_
#define BERTH_CORE_ENGINE_PLACE_PATIENCE_H_

#include <optional>

#include "core/engine/cycle.h"
#include "core/engine/place/placer.h"

namespace berth {

// kWaitsForBetterTier if the gang should wait; it is re-evaluated when the tier should be free.
// nullopt: it may start where it fits. Changes nothing. Free for jobs without patience.
std::optional<BlockedVerdict> AwaitBetterTier(Cycle& cycle, Placer& placer, const Job& job,
                                              const JobNeeds& needs);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_PATIENCE_H_
