#include "clients/agent/discovery/nvml_join.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

// In virtual machines and on GB200, the switch at the end of a link has no address: all ones.
bool HasNoAddress(const NvmlPciInfo& info) {
  return info.bus > 0xff || info.device > 0x1f || info.domain == UINT32_MAX ||
         (info.bus == 0xff && info.device == 0x1f && info.domain >= 0xffff);
}

std::string FabricState(unsigned char state) {
  switch (state) {
    case kNvmlFabricNotSupported:
      return "";
    case kNvmlFabricNotStarted:
      return "not started";
    case kNvmlFabricInProgress:
      return "in progress";
    case kNvmlFabricCompleted:
      return "completed";
    default:
      return absl::StrCat("state ", static_cast<int>(state));
  }
}

// 16 bytes -> 8-4-4-4-12 digits.
std::string ClusterUuid(const unsigned char (&bytes)[16]) {
  const std::string hex =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), 16));
  if (hex.find_first_not_of('0') == std::string::npos) return "";
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

class Joiner {
 public:
  Joiner(const NvmlLibrary& nvml, Machine* machine) : nvml_(nvml), machine_(machine) {}

  void Join() {
    (void)nvml_.DriverVersion(&machine_->nvidia_driver);
    unsigned count = 0;
    if (const NvmlResult result = nvml_.DeviceCount(&count); result != kNvmlSuccess) {
      Warn(absl::StrCat("NVML cannot count the GPUs: ", nvml_.ErrorText(result)));
      count = 0;
    }
    std::map<PciAddress, NvmlDevice> seen;
    for (unsigned i = 0; i < std::min(count, kMaxGpus); ++i) Find(i, &seen);
    AddUnseen(seen);
    for (Gpu& gpu : machine_->gpus) {
      if (gpu.vendor != "nvidia") continue;
      const auto found = seen.find(gpu.pci);
      if (found == seen.end()) {
        if (gpu.problem.empty()) gpu.problem = "NVML does not report it";
      } else {
        Read(found->second, &gpu);
      }
    }
  }

 private:
  void Warn(std::string text) { machine_->warnings.push_back(std::move(text)); }

  void Find(unsigned index, std::map<PciAddress, NvmlDevice>* seen) {
    NvmlDevice device = nullptr;
    NvmlPciInfo info = {};
    NvmlResult result = nvml_.Device(index, &device);
    if (result == kNvmlSuccess) result = nvml_.PciInfo(device, &info);
    if (result == kNvmlSuccess) {
      (*seen)[AddressOf(info)] = device;
      return;
    }
    Warn(absl::StrCat("NVML cannot read GPU ", index, ": ", nvml_.ErrorText(result)));
  }

  // In containers, /sys may be hidden while the driver is not.
  void AddUnseen(const std::map<PciAddress, NvmlDevice>& seen) {
    for (const auto& [address, device] : seen) {
      const bool known = std::any_of(machine_->gpus.begin(), machine_->gpus.end(),
                                     [&at = address](const Gpu& gpu) { return gpu.pci == at; });
      if (known) continue;
      Warn(absl::StrCat("the GPU at PCI ", ToString(address), " is not in the PCI tree"));
      machine_->gpus.push_back({.vendor = "nvidia", .pci = address});
    }
    std::stable_sort(machine_->gpus.begin(), machine_->gpus.end(), [](const Gpu& a, const Gpu& b) {
      return std::tie(a.pci, a.partition) < std::tie(b.pci, b.partition);
    });
  }

  // If a GPU falls off the bus, each call returns this.
  bool Ok(NvmlResult result, Gpu* gpu) const {
    if (result == kNvmlGpuIsLost) gpu->problem = nvml_.ErrorText(result);
    return result == kNvmlSuccess;
  }

  void Read(NvmlDevice device, Gpu* gpu) {
    const NvmlResult result = nvml_.Uuid(device, &gpu->uuid);
    if (!Ok(result, gpu)) {
      gpu->problem = absl::StrCat("NVML does not report its UUID: ", nvml_.ErrorText(result));
      return;
    }
    (void)Ok(nvml_.Name(device, &gpu->model), gpu);
    int major = 0, minor = 0;
    if (Ok(nvml_.ComputeCapability(device, &major, &minor), gpu) && major > 0 && major < 100 &&
        minor >= 0 && minor < 100) {
      gpu->compute_capability = absl::StrCat(major, ".", minor);
    }
    NvmlMemory memory = {};
    if (Ok(nvml_.Memory(device, &memory), gpu))
      gpu->memory_bytes =
          static_cast<int64_t>(std::min<unsigned long long>(memory.total, 1ull << 60));
    ReadLinks(device, gpu);
    ReadFabric(device, gpu);
    ReadMig(device, gpu);
    ReadEcc(device, gpu);
  }

  // NVML reports more about the links than any file.
  void ReadLinks(NvmlDevice device, Gpu* gpu) {
    std::map<std::tuple<PeerKind, PciAddress>, int32_t> counts;
    bool asked = false;
    for (unsigned link = 0; link < kNvmlMaxLinks; ++link) {
      bool active = false;
      const NvmlResult result = nvml_.LinkState(device, link, &active);
      if (result == kNvmlInvalidArgument || result == kNvmlFunctionNotFound) break;
      if (!Ok(result, gpu)) continue;
      asked = true;
      if (active) CountLink(device, link, &counts);
    }
    if (!asked) return;
    gpu->links.clear();
    for (const auto& [peer, count] : counts) {
      gpu->links.push_back(
          {.peer = std::get<0>(peer), .address = std::get<1>(peer), .count = count});
    }
  }

  void CountLink(NvmlDevice device, unsigned link,
                 std::map<std::tuple<PeerKind, PciAddress>, int32_t>* counts) const {
    NvmlPciInfo info = {};
    if (nvml_.LinkPeer(device, link, &info) != kNvmlSuccess) {
      ++(*counts)[{PeerKind::kUnknown, {}}];
      return;
    }
    const PeerKind kind = KindOf(device, link, info);
    const PciAddress address = HasNoAddress(info) ? PciAddress() : AddressOf(info);
    ++(*counts)[{kind, address}];
  }

  // Newer drivers report the kind; on older ones it follows from the address.
  PeerKind KindOf(NvmlDevice device, unsigned link, const NvmlPciInfo& info) const {
    unsigned type = 0;
    if (nvml_.LinkPeerType(device, link, &type) == kNvmlSuccess) {
      if (type == kNvmlRemoteGpu) return PeerKind::kGpu;
      if (type == kNvmlRemoteCpu) return PeerKind::kCpu;
      if (type == kNvmlRemoteSwitch) return PeerKind::kSwitch;
    }
    if (HasNoAddress(info)) return PeerKind::kSwitch;
    const PciAddress address = AddressOf(info);
    for (const Gpu& gpu : machine_->gpus) {
      if (gpu.pci == address) return PeerKind::kGpu;
    }
    for (const PciNode& node : machine_->pci) {
      if (node.kind == PciKind::kDevice && node.address == address &&
          node.class_id == kClassNvSwitch) {
        return PeerKind::kSwitch;
      }
    }
    const bool ibm = (info.device_and_vendor & 0xffff) == static_cast<unsigned>(kVendorIbm);
    return ibm ? PeerKind::kCpu : PeerKind::kUnknown;
  }

  void ReadFabric(NvmlDevice device, Gpu* gpu) const {
    NvmlFabricInfo info = {};
    if (!Ok(nvml_.Fabric(device, &info), gpu)) return;
    gpu->fabric_state = FabricState(info.state);
    if (info.state != kNvmlFabricCompleted) return;
    if (info.status != kNvmlSuccess) {
      gpu->fabric_state = absl::StrCat("failed: ", nvml_.ErrorText(info.status));
      return;
    }
    gpu->fabric_cluster = ClusterUuid(info.cluster_uuid);
    gpu->fabric_clique = info.clique_id;
  }

  void ReadMig(NvmlDevice device, Gpu* gpu) const {
    unsigned slots = 0;
    if (!Ok(nvml_.MigMode(device, &gpu->mig_enabled), gpu) || !gpu->mig_enabled) return;
    if (!Ok(nvml_.MigSlots(device, &slots), gpu)) return;
    for (unsigned slot = 0; slot < std::min(slots, kMaxMigSlots); ++slot) {
      NvmlDevice mig = nullptr;
      if (nvml_.MigDevice(device, slot, &mig) != kNvmlSuccess) continue;  // most slots are empty
      MigInstance instance;
      if (ReadInstance(mig, &instance)) gpu->mig.push_back(std::move(instance));
    }
  }

  bool ReadInstance(NvmlDevice mig, MigInstance* instance) const {
    if (nvml_.Uuid(mig, &instance->uuid) != kNvmlSuccess) return false;
    std::string name;
    if (nvml_.Name(mig, &name) == kNvmlSuccess) instance->profile = MigProfile(name);
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
    if (nvml_.MigIds(mig, &gpu_instance, &compute_instance) == kNvmlSuccess) {
      instance->gpu_instance = static_cast<int32_t>(gpu_instance);
      instance->compute_instance = static_cast<int32_t>(compute_instance);
    }
    NvmlAttributes attributes = {};
    if (nvml_.Attributes(mig, &attributes) == kNvmlSuccess) {
      instance->slices = static_cast<int32_t>(attributes.compute_instance_slices);
      instance->memory_bytes = static_cast<int64_t>(
          std::min<unsigned long long>(attributes.memory_mebibytes, 1ull << 40) << 20);
    }
    return true;
  }

  void ReadEcc(NvmlDevice device, Gpu* gpu) const {
    bool enabled = false;
    bool pending = false;
    unsigned long long count = 0;
    if (Ok(nvml_.RemapPending(device, &pending), gpu)) gpu->remap_pending = pending;
    if (!Ok(nvml_.EccMode(device, &enabled), gpu)) return;
    gpu->ecc_enabled = enabled;
    if (!enabled) return;
    if (Ok(nvml_.EccErrors(device, kNvmlCorrected, &count), gpu))
      gpu->ecc_corrected = static_cast<int64_t>(count);
    if (Ok(nvml_.EccErrors(device, kNvmlUncorrected, &count), gpu))
      gpu->ecc_uncorrected = static_cast<int64_t>(count);
  }

  const NvmlLibrary& nvml_;
  Machine* machine_;
};

}  // namespace

PciAddress AddressOf(const NvmlPciInfo& info) {
  return {.domain = info.domain,
          .bus = static_cast<uint8_t>(info.bus),
          .device = static_cast<uint8_t>(info.device)};
}

std::string MigProfile(const std::string& name) {
  const size_t at = name.rfind("MIG ");
  return at == std::string::npos ? "" : name.substr(at + 4);
}

void JoinNvml(const NvmlLibrary& nvml, Machine* machine) { Joiner(nvml, machine).Join(); }

void JoinNvmlLibrary(const std::string& name, Machine* machine) {
  const auto library = NvmlLibrary::Open(name);
  if (library.ok()) return JoinNvml(**library, machine);
  if (absl::IsNotFound(library.status())) return;
  machine->warnings.push_back(std::string(library.status().message()));
  for (Gpu& gpu : machine->gpus) {
    if (gpu.vendor == "nvidia") gpu.problem = "NVIDIA's driver does not work";
  }
}

}  // namespace berth::discovery
