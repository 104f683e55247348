// Reads the ports that UFM lists: GET /ufmRest/resources/ports, JSON.
//
//   [{"description": "Computer IB Port", "system_name": "node0", "peer_node_name": "leaf0",
//     "active_width": "4x", "active_speed": "NDR", "guid": "0002c90300001101"},
//    {"description": "Switch IB Port", "system_name": "leaf0", "peer_node_name": "spine0"}, ..]
//
// Read: ports of computers, as cables from system_name to the leaf switch peer_node_name, and those
// of switches to other switches; speeds; groups as fabric.h says, named after the first of their
// switches by name. --ports maps a GUID to its node. Left out, and counted in warnings: as for
// ibnetdiscover. Ignored: ports without a peer, and all other keys.
// UFM writes some forty keys per port. To stay below 16 MiB, split the file, or reduce it:
//   jq '[.[] | {description, system_name, peer_node_name, active_width, active_speed, guid}]'
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_UFM_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_UFM_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadUfmPorts(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_UFM_H_
