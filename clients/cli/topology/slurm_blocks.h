// Slurm's blocks (topology/block), in a form common to topology.conf and topology.yaml.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_BLOCKS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/topology/source.h"

namespace berth {

// `blocks` are in the order of the file, each with nodes: tier 1, "block". Each size after the
// first is a tier above: groups of size/first consecutive blocks, as Slurm aggregates them.
//
// Example: blocks b1 .. b4 of 4 nodes, sizes {4, 8, 16} -> tier 2 "block-8": {b1,b2}, {b3,b4};
// tier 3 "block-16": all. Sizes {30, 120} on blocks of 32 nodes: the first is the size that
// jobs are planned with, so four blocks make one of 120.
//
// A size larger than all blocks adds nothing and is left out, with a warning. An aggregate has no
// name in Slurm: it is opaque, named after the first of its blocks by name ("b1-x2").
// INVALID_ARGUMENT for sizes that do not rise or are not a power of two times the first.
absl::Status AddBlocks(std::vector<NodeGroup> blocks, const std::vector<int64_t>& sizes,
                       Imported* imported);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_BLOCKS_H_
