// Sums over the nodes of HyperNodes, computed in steps.
#ifndef BERTH_SERVER_READS_DOMAIN_TOTALS_H_
#define BERTH_SERVER_READS_DOMAIN_TOTALS_H_

#include "berth/v1/hypernode.pb.h"
#include "core/model/cluster_state.h"
#include "server/reads/read_view.h"

namespace berth {

// Fills nodes, ready nodes and devices of the status, over the HyperNode and all below it. Does
// nothing if it is gone.
void FillTotals(ReadView& view, HyperNodeId id, v1::HyperNodeStatus* status);

// Unfulfilled claims: nodes that are in another HyperNode of its kind or do not exist, HyperNodes
// that do not exist. At most kMaxConflicts, and the number of further ones. Examines every node if
// it has selectors other than names.
inline constexpr int kMaxConflicts = 100;
void FillConflicts(ReadView& view, HyperNodeId id, v1::HyperNodeStatus* status);

// The same without steps: in the turn that changed it.
void FillTotals(const ClusterState& state, HyperNodeId id, v1::HyperNodeStatus* status);

}  // namespace berth

#endif  // BERTH_SERVER_READS_DOMAIN_TOTALS_H_
