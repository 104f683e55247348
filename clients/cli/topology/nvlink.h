// Reads NVLink domains from a label of the nodes: by default nvidia.com/gpu.clique. Its value is
// CLUSTERUUID.CLIQUEID, as NVIDIA's device plugin and feature discovery set it. Nodes with the same
// value reach each other by NVLink.
//
//   n1, n2 {nvidia.com/gpu.clique: 7d1c40aa-52e0-4b1f-9d60-0c5be1f2a901.1}
//     -> "7d1c40aa-52e0-4b1f-9d60-0c5be1f2a901-1", kind nvlink, tier 1 "domain" {n1, n2}
//
// Read: the label, or another one with --labels KEY. Nodes without it, or whose UUID is all zeros
// (the fabric is not up), are left out. UUIDs may change when the fabric manager restarts.
// Therefore a group keeps the name of the HyperNode that it overlaps most.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_NVLINK_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_NVLINK_H_

#include "clients/cli/topology/source.h"

namespace berth {

inline constexpr char kCliqueLabel[] = "nvidia.com/gpu.clique";

// Groups of kind `kind` by the label's value.
std::vector<NodeGroup> GroupByClique(const std::vector<LabelledNode>& nodes, const std::string& key,
                                     const std::string& kind);

absl::StatusOr<Imported> ReadNvlink(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_NVLINK_H_
