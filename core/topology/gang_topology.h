// The default topology constraint for gangs that request no placement.
#ifndef BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_
#define BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/model/cluster_state.h"
#include "core/model/job.h"

namespace berth {

struct GangTopology {
  int32_t highest_tier = 1;  // of the network tree; 0: no default constraint
  Duration patience = absl::Minutes(10);
};

// Adds a soft constraint to a job that is being submitted, if two or more of its tasks start
// together, neither the job nor a group sets a strategy, topology or affinity, and the cluster has
// HyperNodes.
void AddDefaultTopology(const ClusterState& state, const GangTopology& topology, JobSpec* spec);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_GANG_TOPOLOGY_H_
