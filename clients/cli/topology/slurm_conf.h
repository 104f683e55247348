// Slurm's topology.conf (man topology.conf), for topology/tree and topology/block.
//
//   SwitchName=s0 Nodes=dev[0-5] LinkSpeed=400       a leaf
//   SwitchName=s3 Switches=s[0-2]                    above others
//   BlockName=b1 Nodes=node[01-04]                   or blocks; a file has the one or the other
//   BlockSizes=4,8,16                                slurm_blocks.h
//
// Keys in any case; "#" begins a comment; "\" at the end of a line continues on the next.
// Read: the above. LinkSpeed, which has no unit in Slurm and which Slurm ignores, is read as Gb/s
// of a member's link. Refused by name: RingName, Include, and every unknown key, because a typing
// error would otherwise remove nodes from the tree. Several files are read as one.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_CONF_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_CONF_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadSlurmConf(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_CONF_H_
