#include "clients/agent/changed_devices.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/device_inventory.h"

namespace berth {
namespace {

constexpr int64_t kSmallPart = 16;

// None of these messages has maps: equal values serialize to equal bytes.
template <class Messages>
std::string TextOf(const Messages& messages) {
  std::string text;
  for (const auto& message : messages) absl::StrAppend(&text, "\n", message.SerializeAsString());
  return text;
}

std::string CliqueOf(const v1::NodeInventory& inventory) {
  const auto found = inventory.labels().find(kCliqueLabel);
  return found == inventory.labels().end() ? "" : found->second;
}

std::string TopologyText(const v1::NodeInventory& inventory) {
  return inventory.devices().empty() ? "" : inventory.topology().SerializeAsString();
}

}  // namespace

std::string ChangedDevices(const v1::NodeInventory& before, const v1::NodeInventory& now) {
  std::vector<const char*> changed;
  if (TextOf(before.devices()) != TextOf(now.devices())) changed.push_back("devices");
  if (TopologyText(before) != TopologyText(now)) changed.push_back("topology");
  if (CliqueOf(before) != CliqueOf(now)) changed.push_back("fabric");
  if (TextOf(before.taints()) != TextOf(now.taints())) changed.push_back("taints");
  return absl::StrJoin(changed, ", ");
}

void KeepMemory(const v1::DeviceTopology& before, v1::DeviceTopology* now) {
  for (v1::NumaNode& numa : *now->mutable_numa_nodes()) {
    for (const v1::NumaNode& known : before.numa_nodes()) {
      if (known.id() != numa.id()) continue;
      const int64_t change = std::abs(numa.memory_bytes() - known.memory_bytes());
      if (change <= known.memory_bytes() / kSmallPart) numa.set_memory_bytes(known.memory_bytes());
    }
  }
}

}  // namespace berth
