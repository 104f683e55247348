// Finds changes to a waiting job that would start it: candidates by kind, each tried in a dry run
// in which the job as it is has been withdrawn. What did not start there is not offered.
#ifndef BERTH_CORE_ENGINE_REMEDIES_H_
#define BERTH_CORE_ENGINE_REMEDIES_H_

#include <vector>

#include "core/engine/explain.h"

namespace berth {

// Cheapest first, at most one of each kind and group; none for a job some of whose tasks have
// places. Of a job that can never fit also those with which it could, though not at once. All but
// kWait.
std::vector<Remedy> RemediesFor(ClusterState& state, const Policies& policies, const Job& job,
                                const WaitReason& first, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_REMEDIES_H_
