// Turns of the jobs of a queue with a slice (QueueSpec::slice), part of preempt. Jobs of equal
// priority that can be paused as a whole (TakesTurns) share places in time: each runs for a slice,
// while the others are frozen on the same places. So all of them must fit there but for what a
// pause gives back, and nothing is ever stopped.
//
//   one node of 8 cores, slice 5m, jobs of 8 cores; in brackets: frozen
//   0:00 A
//   0:05 B [A]     B, submitted at 0:01, enters
//   0:10 A [B]     C is submitted at 0:12
//   0:15 B [A]     B has waited since 0:10, longer than C
//   0:20 C [A B]   C enters: it has waited longer than A
//   0:25 A [B C]   0:30 B   0:35 C   ...
//
// A job that is not placed yet enters when the turn of those that run is over: their slice has
// passed since they last went on, nobody who waits frozen for these places has waited for longer,
// and it fits beside them. Frozen jobs get their turn by how long they have been paused, after
// those that enter. So everybody who waits is overtaken only by those who have waited longer, or
// who wait for other places; and by higher priorities.
#ifndef BERTH_CORE_ACTIONS_TURNS_H_
#define BERTH_CORE_ACTIONS_TURNS_H_

#include "core/engine/victims/domain_victims.h"

namespace berth {

// Places for a job that takes turns, by pausing others. If not decided: protected_until is when to
// ask again.
VictimOutcome PlanTurn(Cycle& cycle, UnitPool& pool, const Job& job, const JobNeeds& needs);

// Pauses those whose turn is over for frozen jobs that wait for their CPU.
void PassTurns(Cycle& cycle);

}  // namespace berth

#endif  // BERTH_CORE_ACTIONS_TURNS_H_
