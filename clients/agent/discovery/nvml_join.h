// Adds NVML's data to the GPUs of the PCI tree.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NVML_JOIN_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NVML_JOIN_H_

#include <string>

#include "clients/agent/discovery/machine.h"
#include "clients/agent/discovery/nvml_library.h"

namespace berth::discovery {

// Fills in model, UUID, memory, MIG, NVLink, fabric and ECC of the machine's NVIDIA GPUs, matched
// by PCI address; a GPU that only NVML reports is added without a position. A call that fails
// leaves its field unchanged; "not supported" and a driver that is too old are not errors. A GPU
// that NVML does not report, or whose address or UUID it cannot read, gets a `problem`.
void JoinNvml(const NvmlLibrary& nvml, Machine* machine);

// The same with the library of that name. If it does not exist, does nothing; if it does not start,
// adds a warning and a problem to every NVIDIA GPU.
void JoinNvmlLibrary(const std::string& name, Machine* machine);

// NVML does not report the function; it is always 0.
PciAddress AddressOf(const NvmlPciInfo& info);
// The profile in an instance's name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb" -> "1g.5gb".
std::string MigProfile(const std::string& name);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NVML_JOIN_H_
