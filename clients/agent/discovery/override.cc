#include "clients/agent/discovery/override.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace berth::discovery {
namespace {

class Mover {
 public:
  Mover(const Machine& given, Machine* machine) : given_(given), machine_(machine) {
    old_ = std::move(machine->pci);
    machine->pci = given.pci;
    for (const NumaNode& node : machine->numa_nodes) packages_[node.os_index] = node.package;
    for (size_t i = 0; i < given.pci.size(); ++i) {
      if (given.pci[i].kind == PciKind::kDevice)
        places_.emplace(given.pci[i].address, static_cast<int32_t>(i));
    }
    for (PciNode& node : machine->pci) node.package = PackageOf(node);
  }

  template <class Device>
  void Move(Device* device) {
    const auto found = places_.find(device->pci);
    if (found == places_.end()) {
      device->pci_node = KeepOld(device->pci_node);
      Warn(device->pci, " is not in the topology file; using the machine's own position");
      return;
    }
    device->pci_node = found->second;
    const PciNode& node = machine_->pci[static_cast<size_t>(found->second)];
    if (node.numa_nodes.empty()) return;
    device->numa_node = node.numa_nodes.size() == 1 ? node.numa_nodes[0] : -1;
    device->package = node.package;
  }

  void Links(Gpu* gpu) const {
    if (!gpu->links.empty()) return;
    for (const Gpu& other : given_.gpus) {
      if (other.pci == gpu->pci && other.partition == gpu->partition) gpu->links = other.links;
    }
  }

  template <class Device>
  void ReportMissing(const std::vector<Device>& given, const std::vector<Device>& found) {
    for (const Device& device : given) {
      const bool here = std::any_of(found.begin(), found.end(),
                                    [&](const Device& other) { return other.pci == device.pci; });
      if (!here) Warn(device.pci, " is in the topology file, but not in the machine");
    }
  }

 private:
  int32_t PackageOf(const PciNode& node) const {
    if (node.numa_nodes.size() != 1) return -1;
    const auto found = packages_.find(node.numa_nodes[0]);
    return found == packages_.end() ? -1 : found->second;
  }

  // Copies the old node and its ancestors, once.
  int32_t KeepOld(int32_t place) {
    if (place < 0) return -1;
    const auto [found, fresh] = kept_.emplace(place, -1);
    if (!fresh) return found->second;
    PciNode node = old_[static_cast<size_t>(place)];
    node.parent = KeepOld(node.parent);
    machine_->pci.push_back(std::move(node));
    return kept_[place] = static_cast<int32_t>(machine_->pci.size()) - 1;
  }

  void Warn(const PciAddress& address, absl::string_view text) {
    machine_->warnings.push_back(absl::StrCat("PCI ", ToString(address), text));
  }

  const Machine& given_;
  Machine* machine_;
  std::vector<PciNode> old_;
  std::map<PciAddress, int32_t> places_;
  std::map<int32_t, int32_t> packages_;  // by NUMA node
  std::map<int32_t, int32_t> kept_;
};

}  // namespace

void ApplyOverride(const Machine& given, Machine* machine) {
  Mover mover(given, machine);
  for (Gpu& gpu : machine->gpus) {
    mover.Move(&gpu);
    mover.Links(&gpu);
  }
  for (Nic& nic : machine->nics) mover.Move(&nic);
  mover.ReportMissing(given.gpus, machine->gpus);
  mover.ReportMissing(given.nics, machine->nics);
}

}  // namespace berth::discovery
