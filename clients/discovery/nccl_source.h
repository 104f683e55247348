// NCCL's and RCCL's topology XML: what cloud providers hand out (NCCL_TOPO_FILE) and what NCCL
// itself writes (NCCL_TOPO_DUMP_FILE).
//
//   <system><cpu numaid="0"><pci busid="..." class="0x060400"> a switch
//     <pci class="0x030200"><gpu dev="0"><nvlink target=... count="12"/></gpu></pci>
//     <pci class="0x020700"><nic><net name="mlx5_0" speed="200000"/></nic></pci> ...
//
// A <pci> that holds others is a whole switch, where hwloc has a bridge for each of its ports: each
// child gets a port of its own here, so that one rule of distances serves both. A <cpu> is one host
// bridge, as NCCL has no class between PHB and SYS.
#ifndef BERTH_CLIENTS_DISCOVERY_NCCL_SOURCE_H_
#define BERTH_CLIENTS_DISCOVERY_NCCL_SOURCE_H_

#include "absl/status/statusor.h"
#include "clients/discovery/machine.h"
#include "clients/discovery/xml_reader.h"

namespace berth::discovery {

// `document`: its root is <system>. The whole tree is kept, also functions that the file says
// nothing about (files of AWS have no classes). INVALID_ARGUMENT "line N: reason" for bus ids and
// numbers that are none, or a tree without <cpu>.
absl::StatusOr<Machine> ReadNcclXml(const XmlDocument& document);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_NCCL_SOURCE_H_
