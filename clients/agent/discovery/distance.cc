#include "clients/agent/discovery/distance.h"

#include <algorithm>

namespace berth::discovery {
namespace {

// The path from the node up to its root.
std::vector<int32_t> Chain(const Machine& machine, int32_t node) {
  std::vector<int32_t> chain;
  for (; node >= 0; node = machine.pci[static_cast<size_t>(node)].parent) chain.push_back(node);
  return chain;
}

bool SameNuma(const PciNode& a, const PciNode& b) {
  return !a.numa_nodes.empty() && a.numa_nodes == b.numa_nodes;
}

// Totals of one GPU's links of one fabric.
struct Links {
  int64_t count = 0;
  int64_t mb_per_s = 0;
  void Add(const FabricLink& link) {
    count += link.count;
    mb_per_s += link.mb_per_s;
  }
  bool any() const { return count > 0 || mb_per_s > 0; }
};

Links ToGpu(const Gpu& from, const Gpu& to, FabricKind fabric) {
  Links sum;
  for (const FabricLink& link : from.links) {
    if (link.fabric == fabric && link.peer == PeerKind::kGpu && link.address == to.pci &&
        link.partition == to.partition) {
      sum.Add(link);
    }
  }
  return sum;
}

Links ToSwitches(const Gpu& gpu, FabricKind fabric) {
  Links sum;
  for (const FabricLink& link : gpu.links) {
    if (link.fabric == fabric && link.peer == PeerKind::kSwitch) sum.Add(link);
  }
  return sum;
}

Links Fewer(const Links& a, const Links& b) {
  return {std::min(a.count, b.count), std::min(a.mb_per_s, b.mb_per_s)};
}

// Each end reports its own view; an end that reports nothing (its driver does not respond) does not
// remove the link.
Links Between(const Gpu& a, const Gpu& b, FabricKind fabric) {
  const Links there = ToGpu(a, b, fabric);
  const Links back = ToGpu(b, a, fabric);
  if (there.any() && back.any()) return Fewer(there, back);
  if (there.any() || back.any()) return there.any() ? there : back;
  return Fewer(ToSwitches(a, fabric), ToSwitches(b, fabric));
}

void AddFabric(const Gpu& a, const Gpu& b, Distance* distance) {
  for (const FabricKind fabric : {FabricKind::kNvlink, FabricKind::kXgmi}) {
    const Links links = Between(a, b, fabric);
    if (!links.any()) continue;
    distance->fabric = fabric;
    distance->links = static_cast<int32_t>(std::min<int64_t>(links.count, INT32_MAX));
    distance->mb_per_s = links.mb_per_s;
    return;
  }
}

template <class A, class B>
Distance DistanceOf(const Machine& machine, const A& a, const B& b) {
  return {.pci = PciClass(machine, a.pci_node, b.pci_node),
          .same_package = a.package >= 0 && a.package == b.package};
}

}  // namespace

LinkClass PciClass(const Machine& machine, int32_t a, int32_t b) {
  if (a < 0 || b < 0) return LinkClass::kUnknown;
  const std::vector<int32_t> up_a = Chain(machine, a);
  const std::vector<int32_t> up_b = Chain(machine, b);
  for (size_t i = 0; i < up_a.size(); ++i) {
    const auto found = std::find(up_b.begin(), up_b.end(), up_a[i]);
    if (found == up_b.end()) continue;
    if (machine.pci[static_cast<size_t>(up_a[i])].kind == PciKind::kHostBridge)
      return LinkClass::kPhb;
    const size_t j = static_cast<size_t>(found - up_b.begin());
    return i <= 2 && j <= 2 ? LinkClass::kPix : LinkClass::kPxb;  // per side: device, one bridge
  }
  return SameNuma(machine.pci[static_cast<size_t>(a)], machine.pci[static_cast<size_t>(b)])
             ? LinkClass::kNode
             : LinkClass::kSys;
}

void ComputeDistances(Machine* machine) {
  const size_t gpus = machine->gpus.size();
  machine->gpu_gpu.assign(gpus, std::vector<Distance>(gpus));
  machine->gpu_nic.assign(gpus, std::vector<Distance>(machine->nics.size()));
  for (size_t i = 0; i < gpus; ++i) {
    const Gpu& gpu = machine->gpus[i];
    for (size_t j = 0; j < gpus; ++j) {
      Distance& distance = machine->gpu_gpu[i][j];
      distance = DistanceOf(*machine, gpu, machine->gpus[j]);
      if (i == j) distance = {.pci = LinkClass::kSelf, .same_package = true};
      if (i != j) AddFabric(gpu, machine->gpus[j], &distance);
    }
    for (size_t j = 0; j < machine->nics.size(); ++j)
      machine->gpu_nic[i][j] = DistanceOf(*machine, gpu, machine->nics[j]);
  }
}

}  // namespace berth::discovery
