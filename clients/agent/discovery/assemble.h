// Turns PCI functions and their OS devices into GPUs and NICs. Every source of PCI trees (hwloc,
// NCCL files) uses this.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_ASSEMBLE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_ASSEMBLE_H_

#include <string>
#include <utility>
#include <vector>

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// A name by which the operating system or a driver library knows a function.
struct OsDevice {
  enum class Kind : uint8_t { kAccelerator, kOpenFabrics, kNetwork };
  Kind kind = Kind::kAccelerator;
  std::string name{};  // "nvml0", "mlx5_0", "ib0"
  std::vector<std::pair<std::string, std::string>> infos{};
  std::vector<FabricLink> links{};

  std::string Info(const char* info) const;  // or ""
};

struct PciDraft {
  PciNode node{};  // node.parent is an index of an earlier draft
  std::vector<OsDevice> os_devices{};
  bool is_gpu = false;  // the source says so, whatever its vendor and class
};

// Whether ROCm's SMI library gave the name. It names each GPU once; other names (cuda, nvml,
// opencl) are additional names of the same GPU.
bool IsRocmName(const OsDevice& device);

// The index of the device among several GPUs on one function (MI300 partitions), -1 if it is the
// only one.
int32_t PartitionOf(const PciDraft& draft, const OsDevice& device);

// Adds the GPUs and NICs, each list sorted by address, and the part of the tree that leads to them
// and to NVSwitches. One function is one GPU, with all its names; but each ROCm name is a separate
// GPU. Keep::kAll keeps the whole tree.
enum class Keep { kDevices, kAll };
void Assemble(const std::vector<PciDraft>& drafts, Machine* machine, Keep keep = Keep::kDevices);

// The kernel's figures of NUMA nodes leave out memory that was plugged in later (seen in virtual
// machines: 8 of 24 GiB). `total_bytes`: of the machine, GPU memory that the kernel manages
// included.
void AddPluggedMemory(int64_t total_bytes, Machine* machine);

// Fills in uuids that no driver reports or that are not unique: "PCI-ADDRESS[-pN]".
void NameGpusWithoutUuid(Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_ASSEMBLE_H_
