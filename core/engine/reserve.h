// Who is kept a place for later, and for how long: reservations are facts (JobReserved), decided
// here and nowhere else.
//
// A reservation is replaced only by an earlier one, or when its places are no longer possible. It
// is given up when its job starts, is nominated, asks for no gang or another one, or others of its
// queue go before it and there may be no more.
#ifndef BERTH_CORE_ENGINE_RESERVE_H_
#define BERTH_CORE_ENGINE_RESERVE_H_

#include "core/engine/cycle.h"
#include "core/engine/placer.h"

namespace berth {

// Runs before the actions: gives up what is not needed any more, and looks again at what is
// overdue.
void KeepReservations(Cycle& cycle);

// The gang lacks room now, those before it in order of service having been served: it keeps its
// reservation, gets an earlier one, or a first one if it is among those that may have one. False if
// it has none now.
bool ReserveFor(Cycle& cycle, Placer& placer, const Job& job);

// Something has started that is expected to be gone in time, and may not be: whoever is kept a
// place that would then not be free is kept another. The work is counted.
void RenewReservations(Cycle& cycle, Placer& placer);

// One more job of the queue may be kept a place.
bool MayReserve(Cycle& cycle, QueueId queue);

// The first start of a reservation after `now`; InfiniteFuture if there is none.
Time NextReservedStart(const ClusterState& state, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_RESERVE_H_
