// Reads the network from labels that agents report. An agent sends the labels of its configuration
// with its inventory; it does not inspect the fabric itself. Whatever writes that configuration
// when a machine is set up can add what the machine sees:
//
//   labels:
//     topology.berth/switch.0: 0002c903000000a1   # of each NIC: the switch that its cable goes to,
//     topology.berth/switch.1: 0002c903000000a2   # by GUID, or by LLDP's chassis id or name
//     nvidia.com/gpu.clique: 7d1c40aa-52e0-4b1f-9d60-0c5be1f2a901.1
//
// Read: topology.berth/switch, and with any suffix ".x", as cables to leaf switches: leaf groups as
// fabric.h says, of the import's kind; nvidia.com/gpu.clique as nvlink.h says. Agents do not see
// the switches above the leaf switches, so each kind has one tier.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_AGENTS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_AGENTS_H_

#include "clients/cli/topology/source.h"

namespace berth {

inline constexpr char kSwitchLabel[] = "topology.berth/switch";

absl::StatusOr<Imported> ReadAgents(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_AGENTS_H_
