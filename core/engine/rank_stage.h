// The rank stage: where waiting jobs stand in their queues, by a job order that gives ranks
// (JobOrder::PrepareRank), by how far they were overtaken (core/engine/line_levels.h) and by how
// long they have waited. Ranks are no facts: the same jobs, policies and time give the same ones,
// and the pending index keeps its classes in their order.
#ifndef BERTH_CORE_ENGINE_RANK_STAGE_H_
#define BERTH_CORE_ENGINE_RANK_STAGE_H_

#include <limits>

#include "core/engine/cycle.h"

namespace berth {

// Of jobs that were overtaken too far, or have waited longer than ShortestFirstParameters::age:
// before all others, and among themselves by age.
inline constexpr int64_t kAgedRank = std::numeric_limits<int64_t>::min();

// Ranks the jobs that came since the last cycle or came back, those whose rank is another by now,
// and those that were overtaken. Before the lifecycle stage. O(these jobs * log waiting).
void RankJobs(Cycle& cycle);

// One job that is there for a trial only.
void RankJob(StateEditor& editor, const ClusterState& state, const Policies& policies,
             const Job& job, Time now);

// When the rank of a job that waits will be another by time alone; InfiniteFuture if none will.
Time NextAgeing(const ClusterState& state);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_RANK_STAGE_H_
