// Reads models of NVIDIA Topograph (github.com/NVIDIA/topograph, tests/models), and the list of
// compute nodes of its NetQ/NMX provider.
//
//   switches: {core: {switches: [sw1, sw2]}, sw1: {switches: [leaf1]}}
//   blocks:
//   - switch: leaf1
//     nodes: ["node[1101-1118]", node1120]
//     annotations: {accelerator.topograph.run/domain: nvl-1,
//                   accelerator.topograph.run/sub-domain: rack1}
// or, as JSON:
//   [{"Name": "node1", "DomainUUID": "3fbf..."}, ..]
//
// Read: the switches as a tree of the import's kind; domains and sub-domains, from annotations or
// labels of blocks with any "accelerator.*" prefix, as trees of kind "nvlink"; of compute nodes
// Name and DomainUUID, as NVLink domains. With sub-domains in a model, these are tier 1 and domains
// tier 2. The name of a sub-domain need not be unique: it is used together with that of its
// domain. Ignored: other labels and annotations (zones, regions). NetQ's graph of links is not
// read.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_TOPOGRAPH_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_TOPOGRAPH_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadTopograph(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_TOPOGRAPH_H_
