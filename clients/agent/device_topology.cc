#include "clients/agent/device_topology.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "clients/agent/device_inventory.h"

namespace berth {
namespace {

using discovery::Distance;
using discovery::FabricKind;
using discovery::LinkClass;
using discovery::Machine;

constexpr int kMaxLinks = 255;
constexpr int kMaxNumaNodes = 64;

v1::LinkClass ToClass(const Distance& distance) {
  if (distance.fabric != FabricKind::kNone) return v1::LINK_CLASS_NVLINK;
  switch (distance.pci) {
    case LinkClass::kPix:
      return v1::LINK_CLASS_PIX;
    case LinkClass::kPxb:
      return v1::LINK_CLASS_PXB;
    case LinkClass::kPhb:
      return v1::LINK_CLASS_PHB;
    case LinkClass::kNode:
      return v1::LINK_CLASS_NODE;
    case LinkClass::kSys:
      return v1::LINK_CLASS_SYS;
    default:
      return v1::LINK_CLASS_UNSPECIFIED;
  }
}

int64_t PciMbPerS(const Machine& machine, int32_t pci_node) {
  return pci_node < 0 ? 0 : machine.pci[static_cast<size_t>(pci_node)].link_mb_per_s;
}

// The bandwidth that NCCL assumes: 12 of the 15.75 GB/s of PCIe 3 x16; 5/6 of that through a host
// bridge (src/graph/topo.h). Between sockets it depends on the CPU: not reported.
int64_t PlannedMbPerS(v1::LinkClass link, int64_t a, int64_t b) {
  const int64_t planned = std::min(a, b) * 4 / 5;
  if (link == v1::LINK_CLASS_PIX || link == v1::LINK_CLASS_PXB) return planned;
  if (link == v1::LINK_CLASS_PHB || link == v1::LINK_CLASS_NODE) return planned * 5 / 6;
  return 0;
}

v1::DeviceLink ToLink(const Machine& machine, const Distance& distance, int32_t a, int32_t b) {
  v1::DeviceLink link;
  link.set_link(ToClass(distance));
  if (link.link() == v1::LINK_CLASS_NVLINK) {
    link.set_count(distance.links);
    link.set_mb_per_s(distance.mb_per_s);
    return link;
  }
  link.set_mb_per_s(PlannedMbPerS(link.link(), PciMbPerS(machine, a), PciMbPerS(machine, b)));
  link.set_same_package(link.link() == v1::LINK_CLASS_SYS && distance.same_package);
  return link;
}

// The index of each found device among the registered ones; -1: not registered.
template <class Found, class NameOf>
std::vector<int> Positions(const std::vector<Found>& found,
                           const std::map<std::string, int>& registered, NameOf name) {
  std::vector<int> positions;
  for (const Found& device : found) {
    const auto at = registered.find(name(device));
    positions.push_back(at == registered.end() ? -1 : at->second);
  }
  return positions;
}

void AddNumaNodes(const Machine& machine, v1::DeviceTopology* topology) {
  std::map<int32_t, const discovery::NumaNode*> by_id;
  for (const discovery::NumaNode& numa : machine.numa_nodes) {
    if (!numa.gpu_memory && numa.os_index >= 0 && !numa.cpus.empty()) by_id[numa.os_index] = &numa;
  }
  if (by_id.size() > kMaxNumaNodes) return;
  for (const auto& [id, numa] : by_id) {
    v1::NumaNode* added = topology->add_numa_nodes();
    added->set_id(id);
    added->set_package(numa->package);
    added->set_cpus(numa->cpus);
    added->set_memory_bytes(numa->memory_bytes);
  }
}

}  // namespace

TopologyBuilder::TopologyBuilder(int devices) : devices_(static_cast<size_t>(devices)) {
  const size_t pairs = devices_ < 2 ? 0 : devices_ * (devices_ - 1) / 2;
  topology_.set_between(std::string(pairs, '\0'));
}

void TopologyBuilder::Set(int first, int second, const v1::DeviceLink& link) {
  if (link.link() == v1::LINK_CLASS_UNSPECIFIED) return;
  const auto a = static_cast<size_t>(std::min(first, second));
  const auto b = static_cast<size_t>(std::max(first, second));
  const auto key = std::make_tuple(static_cast<int>(link.link()), link.count(), link.mb_per_s(),
                                   link.same_package());
  auto code = codes_.find(key);
  if (code == codes_.end()) {
    if (topology_.links_size() == kMaxLinks) return;
    *topology_.add_links() = link;
    code = codes_.emplace(key, static_cast<char>(topology_.links_size())).first;
  }
  (*topology_.mutable_between())[a * (2 * devices_ - a - 1) / 2 + (b - a - 1)] = code->second;
}

v1::DeviceTopology TopologyBuilder::Take() && {
  if (topology_.links().empty()) topology_.clear_between();
  return std::move(topology_);
}

v1::DeviceTopology TopologyOf(const Machine& machine,
                              const google::protobuf::RepeatedPtrField<v1::Device>& devices) {
  std::map<std::string, int> registered;
  // Excludes divided GPUs, whose links no task can use.
  for (int i = 0; i < devices.size(); ++i) {
    if (devices[i].kind() != kMigDevices) registered.emplace(devices[i].uuid(), i);
  }
  const std::vector<int> gpus =
      Positions(machine.gpus, registered, [](const auto& gpu) { return gpu.uuid; });
  const std::vector<int> nics =
      Positions(machine.nics, registered, [](const auto& nic) { return nic.name; });
  TopologyBuilder builder(devices.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    const discovery::Gpu& gpu = machine.gpus[i];
    for (size_t j = 0; j < i && gpus[i] >= 0; ++j) {
      if (gpus[j] < 0) continue;
      builder.Set(gpus[i], gpus[j],
                  ToLink(machine, machine.gpu_gpu[i][j], gpu.pci_node, machine.gpus[j].pci_node));
    }
    for (size_t j = 0; j < nics.size() && gpus[i] >= 0; ++j) {
      if (nics[j] < 0) continue;
      builder.Set(gpus[i], nics[j],
                  ToLink(machine, machine.gpu_nic[i][j], gpu.pci_node, machine.nics[j].pci_node));
    }
  }
  v1::DeviceTopology topology = std::move(builder).Take();
  AddNumaNodes(machine, &topology);
  return topology;
}

}  // namespace berth
