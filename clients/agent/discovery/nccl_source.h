// NCCL's and RCCL's topology XML: cloud providers supply it (NCCL_TOPO_FILE), and NCCL writes it
// (NCCL_TOPO_DUMP_FILE).
//
//   <system><cpu numaid="0"><pci busid="..." class="0x060400"> a switch
//     <pci class="0x030200"><gpu dev="0"><nvlink target=... count="12"/></gpu></pci>
//     <pci class="0x020700"><nic><net name="mlx5_0" speed="200000"/></nic></pci> ...
//
// A <pci> that contains others is a whole switch, where hwloc has a bridge per port: here each
// child gets its own port, so that one distance rule serves both. A <cpu> is one host bridge, as
// NCCL has no class between PHB and SYS.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NCCL_SOURCE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NCCL_SOURCE_H_

#include "absl/status/statusor.h"
#include "clients/agent/discovery/machine.h"
#include "clients/agent/discovery/xml_reader.h"

namespace berth::discovery {

// `document`: its root is <system>. The whole tree is kept, including functions that the file does
// not describe (files from AWS have no classes). INVALID_ARGUMENT "line N: reason" for invalid bus
// ids and numbers, or a tree without <cpu>.
absl::StatusOr<Machine> ReadNcclXml(const XmlDocument& document);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NCCL_SOURCE_H_
