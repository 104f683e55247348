// Slurm's topology.yaml (man topology.yaml): several named topologies. A cluster or each of its
// partitions uses one of them.
//
//   - topology: topo1
//     cluster_default: true
//     tree: {switches: [{switch: root, children: "s[1-2]"}, {switch: s1, nodes: "n[01-02]"}, ..]}
//   - topology: topo2
//     block: {block_sizes: [4, 16], blocks: [{block: b1, nodes: "n[01-04]"}, ..]}
//
// Read: the requested topologies (--topology), otherwise the cluster's default, otherwise the only
// one; `tree`, and `block` as in slurm_blocks.h. `flat` has no groups: nothing to import. `ring`
// and `torus3d` are not trees and are refused by name. A warning names the other topologies.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_YAML_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_YAML_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadSlurmYaml(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_YAML_H_
