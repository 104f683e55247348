// What gangs ask for that say nothing about where they want to be.
#ifndef BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_
#define BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/model/cluster_state.h"
#include "core/model/job.h"

namespace berth {

struct GangTopology {
  int32_t highest_tier = 1;  // of the network tree; 0: nothing is asked on their behalf
  Duration patience = absl::Minutes(10);
};

// Gives a soft constraint to a job that is about to be submitted, if two or more of its tasks start
// together, it names neither strategy, topology nor affinity, for itself or any group, and the
// cluster has HyperNodes.
void AskForTopology(const ClusterState& state, const GangTopology& topology, JobSpec* spec);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_
