// When and where could a gang that does not fit now start at the earliest? The search releases, one
// after the other, what ends first: tasks that are being released, then jobs by their planned end.
//
//   1 node of 8     A 4 until 10:00    B 2 until 10:30    C 2 without walltime
//   gang of 6:      10:00 free 4, 10:30 free 6 -> starts at 10:30
//
// Two steps keep this cheap. The first adds up what each node would have free as jobs end, and how
// many tasks of each shape then fit: an upper bound. Only when the bound says that all tasks fit
// does the second really place the gang, without the ended tasks on the nodes that can take any. So
// all constraints between nodes, tasks and earlier reservations hold, as for a start now. Nothing
// improves between ends, so the first moment at which placing succeeds is the earliest that it can
// find.
#ifndef BERTH_CORE_ENGINE_PLACE_EARLIEST_START_H_
#define BERTH_CORE_ENGINE_PLACE_EARLIEST_START_H_

#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/place/placer.h"

namespace berth {

// How often one search tries to place a gang. After that, the gang waits without a reservation.
inline constexpr int kMaxPlacingTrials = 100;

// The earliest start strictly before `before` of the gang that the job requests, and its placement.
// nullopt if there is none: jobs in its way have no walltime, a queue's bound, or the number of
// trials. Reservations of other jobs hold; its own does not count. Changes nothing; counts its
// work.
std::optional<Reservation> EarliestStart(Cycle& cycle, Placer& placer, const Job& job,
                                         Time before = absl::InfiniteFuture());

// Whether the gang could still be placed on exactly these nodes at that time.
bool StillPossible(Cycle& cycle, Placer& placer, const Job& job, const Reservation& reservation);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_EARLIEST_START_H_
