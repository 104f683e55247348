// When could a gang that does not fit now start, and where? Found by letting go, one after the
// other, what goes first: what is being released, then jobs by their planned end.
//
//   1 node of 8     A 4 until 10:00    B 2 until 10:30    C 2 without walltime
//   gang of 6:      10:00 free 4, 10:30 free 6 -> starts at 10:30
//
// Two steps keep that cheap. What each node would have free is added up as jobs end, on the side,
// together with how many tasks of each shape then fit: a bound from above. Only when the bound says
// that all of them fit is the gang really placed, with the ended tasks of those nodes gone that can
// take any; so all constraints between nodes, tasks and earlier reservations hold, as they do for a
// start now. Between ends nothing gets better, so the first moment at which that succeeds is the
// earliest that placing can find.
#ifndef BERTH_CORE_ENGINE_EARLIEST_START_H_
#define BERTH_CORE_ENGINE_EARLIEST_START_H_

#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/placer.h"

namespace berth {

// Really placing is tried at most so often in one search: beyond, the gang waits without a
// reservation.
inline constexpr int kMaxPlacingTrials = 100;

// The earliest start strictly before `before` of the gang that the job asks for, and the places;
// nullopt if there is none (what is in its way has no walltime, a queue's bound, the number of
// trials). Others' reservations hold; its own does not count. Nothing is changed; the work is
// counted.
std::optional<Reservation> EarliestStart(Cycle& cycle, Placer& placer, const Job& job,
                                         Time before = absl::InfiniteFuture());

// The gang could still be placed on these very nodes then.
bool StillPossible(Cycle& cycle, Placer& placer, const Job& job, const Reservation& reservation);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EARLIEST_START_H_
