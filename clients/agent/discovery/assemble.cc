#include "clients/agent/discovery/assemble.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

constexpr int32_t kVendorCray = 0x17db;  // Slingshot has no OpenFabrics device, only a network one
constexpr char kActiveState[] = "4";     // of an InfiniBand port

std::vector<const OsDevice*> OsDevicesOf(const PciDraft& draft, OsDevice::Kind kind) {
  std::vector<const OsDevice*> found;
  for (const OsDevice& device : draft.os_devices) {
    if (device.kind == kind) found.push_back(&device);
  }
  return found;
}

const Accelerator* AcceleratorOn(const PciDraft& draft) {
  if (draft.node.kind != PciKind::kDevice) return nullptr;
  if (const auto* found = FindAccelerator(draft.node.vendor, draft.node.class_id)) return found;
  if (draft.is_gpu) return AcceleratorOf(draft.node.vendor);
  const bool rocm = std::any_of(draft.os_devices.begin(), draft.os_devices.end(), IsRocmName);
  return rocm && draft.node.vendor == kVendorAmd ? AcceleratorOf(kVendorAmd) : nullptr;
}

bool IsNic(const PciDraft& draft) {
  if (draft.node.kind != PciKind::kDevice) return false;
  if (!OsDevicesOf(draft, OsDevice::Kind::kOpenFabrics).empty()) return true;
  return draft.node.vendor == kVendorCray && !OsDevicesOf(draft, OsDevice::Kind::kNetwork).empty();
}

// The NUMA node, or -1 if there are several.
int32_t SingleNumaNode(const PciNode& node) {
  return node.numa_nodes.size() == 1 ? node.numa_nodes[0] : -1;
}

std::string FirstInfo(const std::vector<const OsDevice*>& devices, const char* info) {
  for (const OsDevice* device : devices) {
    if (std::string value = device->Info(info); !value.empty()) return value;
  }
  return "";
}

// Libraries report KiB, each under a different name.
int64_t MemoryOf(const std::vector<const OsDevice*>& devices) {
  for (const char* info : {"CUDAGlobalMemorySize", "RSMIVRAMSize", "OpenCLGlobalMemorySize"}) {
    int64_t kibibytes = 0;
    if (absl::SimpleAtoi(FirstInfo(devices, info), &kibibytes) && kibibytes > 0 &&
        kibibytes < (int64_t{1} << 40)) {
      return kibibytes << 10;
    }
  }
  return 0;
}

// AMD's library reports zeros if it knows none.
std::string UuidOf(const std::vector<const OsDevice*>& devices) {
  const std::string nvidia = FirstInfo(devices, "NVIDIAUUID");
  if (!nvidia.empty()) return nvidia;
  const std::string amd = FirstInfo(devices, "AMDUUID");
  return amd.find_first_not_of('0') == std::string::npos ? "" : absl::StrCat("GPU-", amd);
}

Gpu MakeGpu(const PciDraft& draft, const Accelerator& accelerator,
            const std::vector<const OsDevice*>& names, int32_t partition) {
  Gpu gpu{.kind = accelerator.kind, .vendor = accelerator.vendor, .uuid = UuidOf(names)};
  gpu.model = FirstInfo(names, "GPUModel");
  if (gpu.model.empty()) gpu.model = draft.node.name;
  if (gpu.model.empty() && draft.node.vendor == kVendorAmd) gpu.model = AmdModel(draft.node.device);
  gpu.memory_bytes = MemoryOf(names);
  gpu.pci = draft.node.address;
  gpu.partition = partition;
  gpu.numa_node = SingleNumaNode(draft.node);
  gpu.package = draft.node.package;
  for (const OsDevice* name : names) {
    gpu.os_devices.push_back(name->name);
    gpu.links.insert(gpu.links.end(), name->links.begin(), name->links.end());
  }
  std::sort(gpu.os_devices.begin(), gpu.os_devices.end());
  return gpu;
}

void AddGpus(const PciDraft& draft, const Accelerator& accelerator, int32_t place,
             Machine* machine) {
  const std::vector<const OsDevice*> names = OsDevicesOf(draft, OsDevice::Kind::kAccelerator);
  std::vector<Gpu> gpus;
  for (const OsDevice* name : names) {
    const int32_t partition = PartitionOf(draft, *name);
    if (partition >= 0) gpus.push_back(MakeGpu(draft, accelerator, {name}, partition));
  }
  if (gpus.empty()) gpus.push_back(MakeGpu(draft, accelerator, names, -1));
  for (Gpu& gpu : gpus) {
    gpu.pci_node = place;
    machine->gpus.push_back(std::move(gpu));
  }
}

Nic MakeNic(const PciDraft& draft, const OsDevice& device, NicKind kind) {
  Nic nic{.name = device.name, .kind = kind, .model = draft.node.name, .pci = draft.node.address};
  nic.numa_node = SingleNumaNode(draft.node);
  nic.package = draft.node.package;
  nic.guid = device.Info("NodeGUID");
  const std::string state = device.Info("Port1State");
  if (!state.empty()) nic.port_state = state == kActiveState ? "active" : "not active";
  int64_t speed = 0;
  if (absl::SimpleAtoi(device.Info("Speed"), &speed) && speed > 0) nic.megabits_per_s = speed;
  return nic;
}

void AddNics(const PciDraft& draft, int32_t place, Machine* machine) {
  const std::vector<const OsDevice*> fabrics = OsDevicesOf(draft, OsDevice::Kind::kOpenFabrics);
  const std::vector<const OsDevice*> networks = OsDevicesOf(draft, OsDevice::Kind::kNetwork);
  const bool slingshot = fabrics.empty();
  for (const OsDevice* device : slingshot ? networks : fabrics) {
    Nic nic = MakeNic(draft, *device, slingshot ? NicKind::kSlingshot : NicKind::kOpenFabrics);
    nic.pci_node = place;
    for (const OsDevice* network : networks) {
      if (network != device) nic.net_devices.push_back(network->name);
    }
    machine->nics.push_back(std::move(nic));
  }
}

// Which drafts are kept: devices of interest and their ancestors.
std::vector<bool> Kept(const std::vector<PciDraft>& drafts, Keep keep) {
  std::vector<bool> kept(drafts.size(), keep == Keep::kAll);
  for (size_t i = drafts.size(); i-- > 0;) {
    const PciDraft& draft = drafts[i];
    const bool nvswitch =
        draft.node.vendor == kVendorNvidia && draft.node.class_id == kClassNvSwitch;
    if (nvswitch || IsNic(draft) || AcceleratorOn(draft) != nullptr) kept[i] = true;
    if (kept[i] && draft.node.parent >= 0) kept[static_cast<size_t>(draft.node.parent)] = true;
  }
  return kept;
}

template <class T>
void Sort(std::vector<T>* devices) {
  std::stable_sort(devices->begin(), devices->end(), [](const T& a, const T& b) {
    if constexpr (std::is_same_v<T, Gpu>) {
      return std::tie(a.pci, a.partition) < std::tie(b.pci, b.partition);
    } else {
      return std::tie(a.pci, a.name) < std::tie(b.pci, b.name);
    }
  });
}

// Partitions after the first often have no model.
void ShareModels(std::vector<Gpu>* gpus) {
  for (size_t i = 1; i < gpus->size(); ++i) {
    Gpu& gpu = (*gpus)[i];
    if (gpu.model.empty() && gpu.pci == (*gpus)[i - 1].pci) gpu.model = (*gpus)[i - 1].model;
  }
}

}  // namespace

std::string OsDevice::Info(const char* info) const {
  for (const auto& [name_of, value] : infos) {
    if (name_of == info) return value;
  }
  return "";
}

bool IsRocmName(const OsDevice& device) { return absl::StartsWith(device.name, "rsmi"); }

int32_t PartitionOf(const PciDraft& draft, const OsDevice& device) {
  int32_t count = 0;
  int32_t place = -1;
  for (const OsDevice& other : draft.os_devices) {
    if (!IsRocmName(other)) continue;
    if (&other == &device) place = count;
    ++count;
  }
  return count > 1 ? place : -1;
}

void Assemble(const std::vector<PciDraft>& drafts, Machine* machine, Keep keep) {
  const std::vector<bool> kept = Kept(drafts, keep);
  std::vector<int32_t> places(drafts.size(), -1);
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (!kept[i]) continue;
    PciNode node = drafts[i].node;
    if (node.parent >= 0) node.parent = places[static_cast<size_t>(node.parent)];
    places[i] = static_cast<int32_t>(machine->pci.size());
    machine->pci.push_back(std::move(node));
    if (const Accelerator* accelerator = AcceleratorOn(drafts[i]))
      AddGpus(drafts[i], *accelerator, places[i], machine);
    if (IsNic(drafts[i])) AddNics(drafts[i], places[i], machine);
  }
  Sort(&machine->gpus);
  Sort(&machine->nics);
  ShareModels(&machine->gpus);
}

void AddPluggedMemory(int64_t total_bytes, Machine* machine) {
  std::vector<NumaNode*> hosts;
  for (NumaNode& node : machine->numa_nodes) {
    if (node.gpu_memory)
      total_bytes -= node.memory_bytes;
    else
      hosts.push_back(&node);
  }
  if (total_bytes <= machine->host_memory_bytes) return;
  if (hosts.size() == 1) hosts.front()->memory_bytes += total_bytes - machine->host_memory_bytes;
  machine->host_memory_bytes = total_bytes;
}

void NameGpusWithoutUuid(Machine* machine) {
  std::map<std::string, int> holders;
  for (const Gpu& gpu : machine->gpus) ++holders[gpu.uuid];
  for (Gpu& gpu : machine->gpus) {
    if (!gpu.uuid.empty() && holders[gpu.uuid] == 1) continue;
    gpu.uuid = absl::StrCat("PCI-", ToString(gpu.pci),
                            gpu.partition < 0 ? "" : absl::StrCat("-p", gpu.partition));
  }
}

}  // namespace berth::discovery
