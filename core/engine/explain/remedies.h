// Finds changes to a pending job that would start it. Each candidate is tried in a dry run in which
// the original job is withdrawn. Only changes that start the job there are offered.
#ifndef BERTH_CORE_ENGINE_EXPLAIN_REMEDIES_H_
#define BERTH_CORE_ENGINE_EXPLAIN_REMEDIES_H_

#include <vector>

#include "core/engine/explain/explain.h"

namespace berth {

// Cheapest first, at most one of each kind and group; none for a job with placed tasks. For a job
// that can never fit, also changes that let it fit later. All kinds except kWait.
std::vector<Remedy> RemediesFor(ClusterState& state, const Policies& policies, const Job& job,
                                const WaitReason& first, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EXPLAIN_REMEDIES_H_
