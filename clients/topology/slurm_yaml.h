// Slurm's topology.yaml (man topology.yaml): several named topologies, of which a cluster or its
// partitions use one each.
//
//   - topology: topo1
//     cluster_default: true
//     tree: {switches: [{switch: root, children: "s[1-2]"}, {switch: s1, nodes: "n[01-02]"}, ..]}
//   - topology: topo2
//     block: {block_sizes: [4, 16], blocks: [{block: b1, nodes: "n[01-04]"}, ..]}
//
// Read: the topologies asked for (--topology), else the cluster's default, else the only one;
// `tree`, and `block` as slurm_blocks.h says. `flat` holds no groups: nothing to import. `ring` and
// `torus3d` are no trees and are refused by name. Those not asked for are told in a warning.
#ifndef BERTH_CLIENTS_TOPOLOGY_SLURM_YAML_H_
#define BERTH_CLIENTS_TOPOLOGY_SLURM_YAML_H_

#include "clients/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadSlurmYaml(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_SLURM_YAML_H_
