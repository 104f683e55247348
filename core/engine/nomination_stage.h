// Nominations: places that tasks wait for while others are still being released there.
//
//   allocate:  gang j needs 2 nodes; n1 is free, n2 is being released by k  -> nominate j: n1 n2
//   k gone  -> j is bound there;   n2 lost, or not being released after all -> j waits for any
//   place
//
// Evictions and moves nominate as well. A job that has any is bound as a whole or not at all.
#ifndef BERTH_CORE_ENGINE_NOMINATION_STAGE_H_
#define BERTH_CORE_ENGINE_NOMINATION_STAGE_H_

#include "core/engine/cycle.h"
#include "core/engine/placer.h"

namespace berth {

// Runs before the actions: binds the jobs whose nominated places are all free by now, and takes the
// nominations back of those for which one will not become free, or that may not start any more.
void RunNominations(Cycle& cycle);

// Nominates the gang of a waiting job where it fits as soon as what is being released is gone;
// false, with nothing changed, if that is not enough, or it asks for no gang.
bool NominateOnReleasing(Cycle& cycle, Placer& placer, const Job& job, const JobNeeds& needs);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_NOMINATION_STAGE_H_
