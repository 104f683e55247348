// When a changed inventory makes an agent register again.
#include "clients/agent/changed_devices.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

v1::NodeInventory Inventory(int devices, int64_t numa_memory) {
  v1::NodeInventory inventory;
  for (int i = 0; i < devices; ++i) {
    v1::Device* device = inventory.add_devices();
    device->set_kind("gpu");
    device->set_uuid("gpu-" + std::to_string(i));
  }
  v1::NumaNode* numa = inventory.mutable_topology()->add_numa_nodes();
  numa->set_cpus("0-1");
  numa->set_memory_bytes(numa_memory);
  return inventory;
}

constexpr int64_t kMemory = int64_t{24} << 30;

TEST_CASE("changed devices: without devices the topology is not compared") {
  CHECK(ChangedDevices(Inventory(0, kMemory), Inventory(0, kMemory / 2)).empty());
  CHECK(ChangedDevices(Inventory(1, kMemory), Inventory(1, kMemory / 2)) == "topology");
}

TEST_CASE("changed devices: memory that a host lends and takes back is no change") {
  const v1::NodeInventory before = Inventory(2, kMemory);
  v1::NodeInventory now = Inventory(2, kMemory - (int64_t{64} << 20));
  KeepMemory(before.topology(), now.mutable_topology());
  CHECK(ChangedDevices(before, now).empty());
  now = Inventory(2, kMemory / 2);
  KeepMemory(before.topology(), now.mutable_topology());
  CHECK(ChangedDevices(before, now) == "topology");
}

TEST_CASE("changed devices: changes are named") {
  const v1::NodeInventory before = Inventory(2, kMemory);
  v1::NodeInventory now = before;
  CHECK(ChangedDevices(before, now).empty());
  now.mutable_devices(0)->set_unhealthy(true);
  now.add_taints()->set_key("health/disk");
  CHECK(ChangedDevices(before, now) == "devices, taints");
}

}  // namespace
}  // namespace berth
