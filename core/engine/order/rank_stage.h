// The rank stage: ranks pending jobs in their queues by a job order with ranks
// (JobOrder::PrepareRank), by how far they were overtaken (core/engine/order/line_levels.h) and by
// how long they have waited. Ranks are not facts: the same jobs, policies and time give the same
// ranks, and the pending index keeps its classes in that order.
#ifndef BERTH_CORE_ENGINE_ORDER_RANK_STAGE_H_
#define BERTH_CORE_ENGINE_ORDER_RANK_STAGE_H_

#include "core/engine/cycle.h"

namespace berth {

// Ranks jobs that arrived or returned since the last cycle, those whose rank has changed, and those
// that were overtaken. Before the lifecycle stage. O(these jobs * log pending).
void RankJobs(Cycle& cycle);

// For one job that exists for a trial only.
void RankJob(StateEditor& editor, const ClusterState& state, const Policies& policies,
             const Job& job, Time now);

// When time alone next changes the rank of a pending job; InfiniteFuture if never.
Time NextRankChange(const ClusterState& state);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_ORDER_RANK_STAGE_H_
