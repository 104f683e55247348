// Patience: a job whose soft topology constraint wishes for a tier that is not free now, but will
// be before its patience is over, waits for it.
//
//   wished: one rack; now only a pod has room; patience 10 min, eligible since 4 min
//   a rack will be free in 5 min -> waits; in 7 min -> takes the pod
//
// The patience counts from when the job became eligible: its submit, start time, back-off, the end
// of what it depends on, or the last that one of its tasks was sent back to wait.
#ifndef BERTH_CORE_ENGINE_PATIENCE_H_
#define BERTH_CORE_ENGINE_PATIENCE_H_

#include <optional>

#include "core/engine/cycle.h"
#include "core/engine/placer.h"

namespace berth {

// kWaitsForBetterTier if the gang had better wait; it is looked at again when the tier should be
// free. nullopt: it may take what there is. Nothing is changed. For jobs without patience at no
// cost.
std::optional<BlockedVerdict> AwaitBetterTier(Cycle& cycle, Placer& placer, const Job& job,
                                              const JobNeeds& needs);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PATIENCE_H_
