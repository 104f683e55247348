// Nominations: places that tasks wait for while other tasks there are still being released.
//
//   allocate:  gang j needs 2 nodes; n1 is free, n2 is being released by k  -> nominate j: n1 n2
//   k gone  -> j is bound there;   n2 lost, or not being released after all -> j waits for any
//   place
//
// Evictions and moves nominate as well. A job with nominations is bound as a whole or not at all.
#ifndef BERTH_CORE_ENGINE_PLACE_NOMINATION_STAGE_H_
#define BERTH_CORE_ENGINE_PLACE_NOMINATION_STAGE_H_

#include "core/engine/cycle.h"
#include "core/engine/place/placer.h"

namespace berth {

// Runs before the actions: binds jobs whose nominated places are all free now. Withdraws the
// nominations of jobs of which one place will not become free, or that may not start any more.
void RunNominations(Cycle& cycle);

// Every place that the job is nominated for is free now.
bool PlacesAreFree(const ClusterState& state, const Job& job);

// Nominates the gang of a pending job where it fits once what is being released is gone. Returns
// false, with nothing changed, if that does not suffice, or the job needs no gang.
bool NominateOnReleasing(Cycle& cycle, Placer& placer, const Job& job, const JobNeeds& needs);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_NOMINATION_STAGE_H_
