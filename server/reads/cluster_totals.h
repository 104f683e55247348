// Sums over the cluster that no index keeps, for GetClusterInfo and metrics.
#ifndef BERTH_SERVER_READS_CLUSTER_TOTALS_H_
#define BERTH_SERVER_READS_CLUSTER_TOTALS_H_

#include <array>
#include <cstdint>

#include "core/model/cluster_state.h"
#include "server/reads/read_view.h"

namespace berth {

struct NodeTotals {
  std::array<int64_t, 3> by_state{};  // NodeState
  int64_t cordoned = 0;               // including draining nodes
  int64_t ready_cordoned = 0;         // ready nodes that are cordoned and not draining
  int64_t ready_draining = 0;
  int64_t failing = 0;  // kFailingNode or more faults now
  Resources capacity;   // of nodes that accept tasks: ready and not cordoned
  // What is free on these: on nodes without tasks, and on the others.
  Resources free_on_empty, free_on_shared;
};

// Iterates over all nodes, in steps.
NodeTotals SumNodes(ReadView& view, Time now);

}  // namespace berth

#endif  // BERTH_SERVER_READS_CLUSTER_TOTALS_H_
