// Reads Topologies of Kueue (kueue.x-k8s.io, kind Topology): an ordered list of node labels, the
// coarsest first. Together with the labels of the nodes of the cluster, it defines a tree.
//
//   apiVersion: kueue.x-k8s.io/v1beta2
//   kind: Topology
//   metadata: {name: default}
//   spec:
//     levels: [{nodeLabel: example.com/topology-block}, {nodeLabel: kubernetes.io/hostname}]
//
// Read: the levels of the Topology that --topology names, or of the only one; then as labels.h
// says. Ignored: documents of other kinds. Nodes are not filtered by the labels of a
// ResourceFlavor: a node that lacks a level is left out in any case.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_KUEUE_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_KUEUE_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadKueue(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_KUEUE_H_
