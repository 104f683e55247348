// Builds trees from labels of the nodes of the cluster, as reported by their agents (agent
// configuration: `labels`).
//
//   --labels zone,rack      n1 {zone: a, rack: r1}, n2 {zone: b, rack: r1}
//     -> "a" tier 2 {"a-r1"}, "b" tier 2 {"b-r1"}; "a-r1" tier 1 {n1}, "b-r1" tier 1 {n2}
//
// Keys go from the coarsest to the finest. Values need not be unique in the cluster: a group is the
// path of values from the coarsest on, and its name has the whole path. A tier is named after the
// last part of its key, "topology-rack" of "cloud.provider.com/topology-rack". A last key
// "kubernetes.io/hostname" is dropped: a node is not a group of nodes. Nodes that lack one of the
// labels are left out, and counted in a warning.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_LABELS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_LABELS_H_

#include "clients/cli/topology/source.h"

namespace berth {

inline constexpr size_t kMaxLabelKeys = 16;

absl::StatusOr<Imported> GroupByLabels(const std::vector<LabelledNode>& nodes,
                                       std::vector<std::string> keys);

absl::StatusOr<Imported> ReadLabels(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_LABELS_H_
