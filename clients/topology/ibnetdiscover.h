// What `ibnetdiscover` of infiniband-diags prints: every switch and adapter with its cables.
//
//   switchguid=0x2c5eab0300b87b40(2c5eab0300b87b40)
//   Switch  65 "S-2c5eab0300b87b40"   # "MF0;A09-IBLEAF-04:MQM9701/U1" enhanced port 0 lid 73 lmc 0
//   [1]  "H-e09d7303007a4bd8"[1](e09d7303007a4bd8)    # "a08-dgx-c01 mlx5_5" lid 647 4xNDR
//   [35] "S-2c5eab0300c26280"[32]                     # "MF0;A10-IBSPINE-02:MQM9701/U1" lid 236
//   4xNDR Ca  1 "H-e09d730300232e5c"        # "b05-dgx-c09 HCA-6" [1](e09d730300232e5c)
//   "S-2c5eab0300c26480"[9]    # lid 93 lmc 0 "MF0;..:MQM9701/U1" lid 119 4xNDR
//
// Read: switches and adapters, their cables and speeds; groups as fabric.h says,
// named after the smallest GUID of their switches. An adapter's node is what --ports says of the
// GUID of its port, or else of the adapter; else what its description names (host_names.h). Left
// out, and counted in warnings: adapters that neither maps, SHARP aggregation nodes, UFM servers,
// and with
// --known-nodes hosts that are no nodes of the cluster. Ignored: vendor and device ids, LIDs,
// routers, lines of chassis (-g).
#ifndef BERTH_CLIENTS_TOPOLOGY_IBNETDISCOVER_H_
#define BERTH_CLIENTS_TOPOLOGY_IBNETDISCOVER_H_

#include "clients/topology/source.h"

namespace berth {

absl::StatusOr<Imported> ReadIbnetdiscover(const ImportInput& input);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_IBNETDISCOVER_H_
