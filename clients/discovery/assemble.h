// From PCI functions and what hangs on them to GPUs and NICs. Every source of PCI trees (hwloc,
// NCCL files) ends here.
#ifndef BERTH_CLIENTS_DISCOVERY_ASSEMBLE_H_
#define BERTH_CLIENTS_DISCOVERY_ASSEMBLE_H_

#include <string>
#include <utility>
#include <vector>

#include "clients/discovery/machine.h"

namespace berth::discovery {

// A name under which the operating system or a driver's library knows a function.
struct OsDevice {
  enum class Kind : uint8_t { kAccelerator, kOpenFabrics, kNetwork };
  Kind kind = Kind::kAccelerator;
  std::string name{};  // "nvml0", "mlx5_0", "ib0"
  std::vector<std::pair<std::string, std::string>> infos{};
  std::vector<FabricLink> links{};

  std::string Info(const char* info) const;  // or ""
};

struct PciDraft {
  PciNode node{};  // node.parent is a place among the drafts, before this one
  std::vector<OsDevice> os_devices{};
  bool is_gpu = false;  // said so by who wrote it, whatever vendor and class
};

// The name is one that ROCm's SMI library gives: one per GPU, while others (cuda, nvml, opencl) are
// further names of the same GPU.
bool IsRocmName(const OsDevice& device);

// Number of the device among several GPUs on one function (MI300 partitions), -1 if it is the only
// one.
int32_t PartitionOf(const PciDraft& draft, const OsDevice& device);

// Adds the GPUs and NICs, each list by address, and the part of the tree that leads to them and to
// NVSwitches. One function is one GPU, with all its names; but each ROCm name is a GPU of its own.
// Keep::kAll: the whole tree.
enum class Keep { kDevices, kAll };
void Assemble(const std::vector<PciDraft>& drafts, Machine* machine, Keep keep = Keep::kDevices);

// Fills in uuids where no driver told one, or one that others have too: "PCI-ADDRESS[-pN]".
void NameGpusWithoutUuid(Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_ASSEMBLE_H_
