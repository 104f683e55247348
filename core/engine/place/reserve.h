// Which jobs have reservations, and for when. Reservations are facts (JobReserved), decided only
// here.
//
// A reservation is replaced only by an earlier one, or when its places are no longer possible. It
// is given up when its job starts, is nominated, needs no gang or a different one, or when other
// jobs of its queue go first and the maximum is reached.
#ifndef BERTH_CORE_ENGINE_PLACE_RESERVE_H_
#define BERTH_CORE_ENGINE_PLACE_RESERVE_H_

#include "core/engine/cycle.h"
#include "core/engine/place/placer.h"

namespace berth {

// Runs before the actions: gives up reservations that are no longer needed, and replans overdue
// ones.
void KeepReservations(Cycle& cycle);

// The gang lacks room now, after those before it in service order were served. It keeps its
// reservation, gets an earlier one, or its first one if the maximum allows. False if it has none
// now.
bool ReserveFor(Cycle& cycle, Placer& placer, const Job& job);

// A job has started that is expected, but not certain, to end in time. Reservations whose places
// would then not be free are moved. Counts the work.
void RenewReservations(Cycle& cycle, Placer& placer);

// One more job of the queue may get a reservation.
bool MayReserve(Cycle& cycle, QueueId queue);

// The first start of a reservation after `now`; InfiniteFuture if there is none.
Time NextReservedStart(const ClusterState& state, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_RESERVE_H_
