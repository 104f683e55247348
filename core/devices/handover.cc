#include "core/devices/handover.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/devices/best_set.h"

namespace berth {
namespace {

// The NUMA nodes of the NICs, or of the other devices; -1 among them: unknown.
std::set<int32_t> NumaNodesOf(const NodeSpec& spec, const DeviceSet& devices, bool nics) {
  std::set<int32_t> ids;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    const Device& device = spec.devices[i];
    if (devices.Has(i) && (device.kind == kNicKind) == nics) ids.insert(device.numa_node);
  }
  return ids;
}

std::set<int32_t> NumaNodesOf(const NodeSpec& spec, const DeviceSet& devices) {
  std::set<int32_t> ids = NumaNodesOf(spec, devices, /*nics=*/false);
  return ids.empty() ? NumaNodesOf(spec, devices, /*nics=*/true) : ids;
}

}  // namespace

std::vector<size_t> OrderOfDevices(const Node& node, const DeviceSet& devices) {
  std::vector<size_t> order;
  const std::vector<Device>& all = node.spec.devices;
  for (size_t first = 0; first < all.size();) {
    size_t end = first;
    while (end < all.size() && all[end].kind == all[first].kind) ++end;
    const KindLayout* layout = node.layout == nullptr ? nullptr : node.layout->Of(all[first].kind);
    if (layout != nullptr) {
      for (size_t i : RingOrder(*layout, layout->MaskOf(devices))) order.push_back(first + i);
    } else {
      for (size_t i = first; i < end; ++i) {
        if (devices.Has(i)) order.push_back(i);
      }
    }
    first = end;
  }
  return order;
}

NearbyHost HostNear(const NodeSpec& spec, const HostUse& task, const std::vector<HostUse>& others) {
  const std::set<int32_t> ids = NumaNodesOf(spec, task.devices);
  NearbyHost near;
  int64_t cpus = 0, memory = 0;
  for (const NumaNode& numa : spec.topology.numa_nodes) {
    if (!ids.contains(numa.id) || numa.cpus.empty()) continue;
    near.memory_nodes.push_back(numa.id);
    absl::StrAppend(&near.cpus, near.cpus.empty() ? "" : ",", numa.cpus);
    cpus += CountCpus(numa.cpus);
    memory += numa.memory_bytes;
  }
  if (ids.empty() || near.memory_nodes.size() != ids.size()) return {};
  int64_t cpu_millis = task.cpu_millis, memory_bytes = task.memory_bytes;
  for (const HostUse& other : others) {
    const std::set<int32_t> theirs = NumaNodesOf(spec, other.devices);
    const auto shared = [&](int32_t id) { return ids.contains(id); };
    if (std::none_of(theirs.begin(), theirs.end(), shared)) continue;
    cpu_millis += other.cpu_millis;
    memory_bytes += other.memory_bytes;
  }
  constexpr int64_t kMillis = 1000;
  if (cpus * kMillis < cpu_millis || memory < memory_bytes) return {};
  return near;
}

}  // namespace berth
