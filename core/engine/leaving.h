// What is being released is still there; a plan that waits for it tries itself as if it had gone.
// Only where that could matter: many plans in one cycle each look at their own nodes, not at all
// that those before them released.
#ifndef BERTH_CORE_ENGINE_LEAVING_H_
#define BERTH_CORE_ENGINE_LEAVING_H_

#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/reservations.h"

namespace berth {

// In the transaction, for trying out: what is being released on these nodes is gone (Transaction::
// LetGo), but for what is the job's own: that would wait, and be placed in the others' stead. The
// work is counted.
void LetGoOn(Cycle& cycle, const std::vector<NodeId>& nodes, JobId own);

// What the job's queue and those above it will have lost, from the leaf upward.
std::vector<QueueUse> LeavingOfQueues(const ClusterState& state, QueueId leaf);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LEAVING_H_
