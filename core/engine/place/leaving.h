// What is being released is still there, so a plan that waits for it is tried as if it had gone.
// Only where that could matter: with many plans in one cycle, each considers its own nodes, not
// everything that the plans before it released.
#ifndef BERTH_CORE_ENGINE_PLACE_LEAVING_H_
#define BERTH_CORE_ENGINE_PLACE_LEAVING_H_

#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/search/reservations.h"

namespace berth {

// In the transaction, for a trial: removes what is being released on these nodes
// (Transaction::LetGo), and freezes what is being frozen, except tasks of the job itself, which
// would be pending and placed too. Counts the work.
void LetGoOn(Cycle& cycle, const std::vector<NodeId>& nodes, JobId own);

// What the job's queue and its ancestors will have lost, from the leaf upward.
std::vector<QueueUse> LeavingOfQueues(const ClusterState& state, QueueId leaf);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_LEAVING_H_
