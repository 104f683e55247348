#include "clients/agent/discovery/hwloc_source.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/assemble.h"
#include "clients/agent/discovery/cpu_list.h"
#include "clients/agent/discovery/hwloc_links.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

constexpr size_t kMaxNameBytes = 256;

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

std::string Text(const char* text) {
  return text == nullptr ? "" : std::string(text, strnlen(text, kMaxNameBytes));
}
std::string Info(hwloc_obj_t object, const char* name) {
  return Text(hwloc_obj_get_info_by_name(object, name));
}

// No plugins, no other XML parser, no messages, no external input.
void SetEnvironment() {
  std::vector<std::string> foreign;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    if (absl::StartsWith(variable, "HWLOC_"))
      foreign.emplace_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& name : foreign) unsetenv(name.c_str());
  setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  setenv("HWLOC_LIBXML_IMPORT", "0", 1);
  setenv("HWLOC_HIDE_ERRORS", "2", 1);
}

absl::StatusOr<Topology> NewTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return absl::InternalError("hwloc failed to initialize");
  Topology topology(raw);
  // Keep all bridges, or distances are too short; keep all functions, or NVSwitches are missing.
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
    return absl::InternalError("hwloc rejects the filter for PCI devices");
  return topology;
}

// Walks one loaded topology.
class HwlocReader {
 public:
  explicit HwlocReader(hwloc_topology_t topology) : topology_(topology) {}

  Machine Read() {
    ReadPackages();
    Walk(hwloc_get_root_obj(topology_), -1);
    ReadNumaNodes();
    for (PciDraft& draft : drafts_) KeepHostNodes(&draft.node.numa_nodes);
    AddHwlocLinks(topology_, places_, &drafts_);
    Assemble(drafts_, &machine_);
    return std::move(machine_);
  }

 private:
  void ReadPackages() {
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, object)) != nullptr) {
      machine_.packages.push_back({.os_index = static_cast<int32_t>(object->os_index),
                                   .model = Info(object, "CPUModel"),
                                   .cpus = CpuList(object->cpuset)});
    }
  }

  // The package whose NUMA nodes include any of these, -1 if there are several.
  int32_t PackageOf(hwloc_const_nodeset_t nodes) const {
    int32_t found = -1;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, object)) != nullptr) {
      if (nodes == nullptr || object->nodeset == nullptr ||
          !hwloc_bitmap_intersects(object->nodeset, nodes)) {
        continue;
      }
      if (found >= 0) return -1;
      found = static_cast<int32_t>(object->os_index);
    }
    return found;
  }

  void ReadNumaNodes() {
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, object)) !=
           nullptr) {
      NumaNode node{.os_index = static_cast<int32_t>(object->os_index),
                    .package = PackageOf(object->nodeset),
                    .cpus = CpuList(object->cpuset)};
      node.gpu_memory = IsGpuMemory(object);
      if (object->attr != nullptr)
        node.memory_bytes = static_cast<int64_t>(
            std::min<uint64_t>(object->attr->numanode.local_memory, uint64_t{1} << 60));
      if (!node.gpu_memory) machine_.host_memory_bytes += node.memory_bytes;
      machine_.numa_nodes.push_back(std::move(node));
    }
    std::sort(machine_.numa_nodes.begin(), machine_.numa_nodes.end(),
              [](const NumaNode& a, const NumaNode& b) { return a.os_index < b.os_index; });
  }

  // hwloc marks them, if it is new enough. In older files of POWER9 and Grace machines they are
  // bare nodes without CPUs; elsewhere such nodes are host memory (CXL, persistent memory).
  bool IsGpuMemory(hwloc_obj_t object) const {
    if (Text(object->subtype) == "GPUMemory") return true;
    if (object->cpuset == nullptr || !hwloc_bitmap_iszero(object->cpuset)) return false;
    if (!Info(object, "DAXDevice").empty()) return false;
    const std::string architecture = Info(hwloc_get_root_obj(topology_), "Architecture");
    if (architecture != "ppc64le" && architecture != "ppc64" && architecture != "aarch64")
      return false;
    return std::any_of(drafts_.begin(), drafts_.end(), [](const PciDraft& draft) {
      return draft.node.vendor == kVendorNvidia &&
             FindAccelerator(draft.node.vendor, draft.node.class_id) != nullptr;
    });
  }

  // "Near all nodes" has no information if there are several.
  void KeepHostNodes(std::vector<int32_t>* nodes) const {
    size_t hosts = 0;
    std::vector<int32_t> kept;
    for (const NumaNode& node : machine_.numa_nodes) {
      if (node.gpu_memory) continue;
      ++hosts;
      if (std::find(nodes->begin(), nodes->end(), node.os_index) != nodes->end())
        kept.push_back(node.os_index);
    }
    if (hosts > 1 && kept.size() == hosts) kept.clear();
    *nodes = std::move(kept);
  }

  void Walk(hwloc_obj_t object, int32_t parent) {
    for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling)
      Walk(child, -1);
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
      Io(child, parent);
  }

  void Io(hwloc_obj_t object, int32_t parent) {
    int32_t place = parent;
    if (object->type == HWLOC_OBJ_BRIDGE || object->type == HWLOC_OBJ_PCI_DEVICE) {
      place = static_cast<int32_t>(drafts_.size());
      drafts_.push_back({.node = MakeNode(object, parent)});
      places_[object] = {.draft = drafts_.size() - 1};
    } else if (object->type == HWLOC_OBJ_OS_DEVICE && parent >= 0) {
      AddOsDevice(object, static_cast<size_t>(parent));
    }
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling)
      Io(child, place);
  }

  PciNode MakeNode(hwloc_obj_t object, int32_t parent) {
    PciNode node{.parent = parent};
    const hwloc_obj_attr_u& attr = *object->attr;
    if (object->type == HWLOC_OBJ_PCI_DEVICE) {
      SetFunction(attr.pcidev, &node);
    } else if (attr.bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      node.kind = PciKind::kBridge;
      SetFunction(attr.bridge.upstream.pci, &node);
    } else {
      node.kind = PciKind::kHostBridge;
      node.address = {.domain = attr.bridge.downstream.pci.domain,
                      .bus = attr.bridge.downstream.pci.secondary_bus};
    }
    node.name = Info(object, "PCIDevice");
    SetPlace(object, &node);
    return node;
  }

  static void SetFunction(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& from, PciNode* node) {
    node->address = {from.domain, from.bus, from.dev, from.func};
    node->class_id = from.class_id;
    node->vendor = from.vendor_id;
    node->device = from.device_id;
    const double speed = static_cast<double>(from.linkspeed) * 1000;
    node->link_mb_per_s = speed > 0 && speed < 1e9 ? std::lround(speed) : 0;
  }

  void SetPlace(hwloc_obj_t object, PciNode* node) const {
    hwloc_obj_t holder = hwloc_get_non_io_ancestor_obj(topology_, object);
    if (holder == nullptr || holder->nodeset == nullptr) return;
    node->package = PackageOf(holder->nodeset);
    hwloc_obj_t numa = nullptr;
    while ((numa = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, numa)) != nullptr) {
      if (hwloc_bitmap_isset(holder->nodeset, numa->os_index))
        node->numa_nodes.push_back(static_cast<int32_t>(numa->os_index));
    }
  }

  void AddOsDevice(hwloc_obj_t object, size_t draft) {
    OsDevice device{.name = Text(object->name)};
    switch (object->attr->osdev.type) {
      case HWLOC_OBJ_OSDEV_GPU:
      case HWLOC_OBJ_OSDEV_COPROC:
        device.kind = OsDevice::Kind::kAccelerator;
        break;
      case HWLOC_OBJ_OSDEV_OPENFABRICS:
        device.kind = OsDevice::Kind::kOpenFabrics;
        break;
      case HWLOC_OBJ_OSDEV_NETWORK:
        device.kind = OsDevice::Kind::kNetwork;
        break;
      default:
        return;
    }
    for (unsigned i = 0; i < object->infos_count; ++i)
      device.infos.emplace_back(Text(object->infos[i].name), Text(object->infos[i].value));
    std::vector<OsDevice>& devices = drafts_[draft].os_devices;
    places_[object] = {.draft = draft, .os_device = static_cast<int32_t>(devices.size())};
    devices.push_back(std::move(device));
  }

  hwloc_topology_t topology_;
  Machine machine_;
  std::vector<PciDraft> drafts_;
  DraftPlaces places_;
};

absl::StatusOr<Machine> LoadSystem() {
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  absl::StatusOr<Topology> topology = NewTopology();
  if (!topology.ok()) return topology.status();
  if (hwloc_topology_load(topology->get()) != 0)
    return absl::InternalError("hwloc cannot read /proc and /sys");
  return HwlocReader(topology->get()).Read();
}

}  // namespace

absl::StatusOr<Machine> ReadThisMachine() {
  SetEnvironment();
  return LoadSystem();
}

absl::StatusOr<Machine> ReadCopiedRoot(const std::string& root) {
  SetEnvironment();
  setenv("HWLOC_FSROOT", root.c_str(), 1);
  setenv("HWLOC_THISSYSTEM", "0", 1);
  return LoadSystem();
}

absl::StatusOr<Machine> ReadHwlocXml(absl::string_view text) {
  SetEnvironment();
  absl::StatusOr<Topology> topology = NewTopology();
  if (!topology.ok()) return topology.status();
  const std::string copy(text);  // NUL-terminated; hwloc counts the NUL
  if (copy.size() >= static_cast<size_t>(INT32_MAX) ||
      hwloc_topology_set_xmlbuffer(topology->get(), copy.c_str(),
                                   static_cast<int>(copy.size()) + 1) != 0) {
    return absl::InvalidArgumentError("hwloc rejects the XML");
  }
  if (hwloc_topology_load(topology->get()) != 0)
    return absl::InvalidArgumentError("hwloc cannot load a topology from it");
  return HwlocReader(topology->get()).Read();
}

}  // namespace berth::discovery
