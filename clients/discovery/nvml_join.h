// What NVML knows of the GPUs, joined to what the PCI tree shows of them.
#ifndef BERTH_CLIENTS_DISCOVERY_NVML_JOIN_H_
#define BERTH_CLIENTS_DISCOVERY_NVML_JOIN_H_

#include <string>

#include "clients/discovery/machine.h"
#include "clients/discovery/nvml_library.h"

namespace berth::discovery {

// Fills in model, UUID, memory, MIG, NVLink, fabric and ECC of the machine's NVIDIA GPUs, found by
// PCI address; a GPU that only NVML shows is added without a place. A call that fails leaves its
// field as it is, and "not supported" or a driver too old for it are no fault. But a GPU that NVML
// does not show at all, or of which it cannot tell the address or the UUID, gets a `problem`.
void JoinNvml(const NvmlLibrary& nvml, Machine* machine);

// The same with the library of that name. None there: nothing happens; one that does not start: a
// warning, and every NVIDIA GPU has a problem.
void JoinNvmlLibrary(const std::string& name, Machine* machine);

// NVML never tells the function; it is always 0.
PciAddress AddressOf(const NvmlPciInfo& info);
// Of an instance's name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb" -> "1g.5gb".
std::string MigProfile(const std::string& name);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_NVML_JOIN_H_
