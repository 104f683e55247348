// Which tasks a drain asks to save their work (DrainMode::kCheckpoint): those that must leave, and
// the other members of their gang, because a gang saves together. Tasks that run alone
// (GangMembership::kIndependent) are asked only if they must leave themselves.
#ifndef BERTH_CORE_MODEL_DRAINS_H_
#define BERTH_CORE_MODEL_DRAINS_H_

#include <cstdint>

#include "core/model/cluster_state.h"
#include "core/model/job.h"

namespace berth {

// All: the time is Drain::begin of the drain that asks, the first if there are several;
// InfiniteFuture if none does. An attempt that ended there counts as one that was asked.

// For the task itself.
Time DrainOfTask(const ClusterState& state, const Job& job, uint32_t task);
// For the members of its gang.
Time DrainOfGang(const ClusterState& state, const Job& job);
// Since when the attempt is asked, given DrainOfGang. O(1)
Time AskedByDrain(const ClusterState& state, const Job& job, uint32_t task, Time of_gang);
// The same. O(tasks)
Time AskedByDrain(const ClusterState& state, const Job& job, uint32_t task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_DRAINS_H_
