// Reads the output of `ibnetdiscover` of infiniband-diags: every switch and adapter with its
// cables.
//
//   switchguid=0x0002c903000000a1(0002c903000000a1)
//   Switch  65 "S-0002c903000000a1"  # "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 73 lmc 0
//   [1]  "H-0002c90300001101"[1](0002c90300001101)   # "n01 mlx5_5" lid 647 4xNDR
//   [35] "S-0002c903000000f1"[32]                    # "MF0;spine-1:MQM9700/U1" lid 236 4xNDR
//
//   Ca  1 "H-0002c90300001101"       # "n01 mlx5_5"
//   [1](0002c90300001101) "S-0002c903000000a1"[9]    # lid 93 lmc 0 "MF0;leaf-1:.." lid 73 4xNDR
//
// Read: switches and adapters, their cables and speeds; groups as fabric.h says, named after the
// smallest GUID of their switches. The node of an adapter comes from --ports, by the GUID of its
// port or else of the adapter; otherwise from its description (host_names.h).
// Left out, and counted in warnings: adapters that neither maps, SHARP aggregation nodes, UFM
// servers, and with --known-nodes hosts that are not nodes of the cluster.
// Ignored: vendor and device ids, LIDs, routers, lines of chassis (-g).
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_IBNETDISCOVER_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_IBNETDISCOVER_H_

#include "clients/cli/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadIbnetdiscover(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_IBNETDISCOVER_H_
