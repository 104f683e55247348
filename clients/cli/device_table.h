// Tables of the devices of one node and of the links between them.
#ifndef BERTH_CLIENTS_CLI_DEVICE_TABLE_H_
#define BERTH_CLIENTS_CLI_DEVICE_TABLE_H_

#include <string>

#include "berth/v1/node.pb.h"
#include "clients/cli/table.h"

namespace berth {

// A row for each device, below its NUMA node if the node reports NUMA nodes.
Table DeviceTable(const v1::Node& node);

// A row for each GPU or other accelerator, a column for each device with a known link to any of
// them: NV and the number of links, PIX, ... The rows of devices in use are marked. Empty if no
// link is known.
//
//         gpu0  gpu1  nic0
//   gpu0  X     NV18  PIX   in use
//   gpu1  NV18  X     PXB   free
std::string LinkMatrix(const v1::Node& node, const TableStyle& style);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_DEVICE_TABLE_H_
