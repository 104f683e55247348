// The choice of devices on recorded machines, compared with an exhaustive search. Fixtures: see
// fixture_test.cc.
#include "core/devices/best_set.h"

#include <stdlib.h>

#include <bit>
#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/device_topology.h"
#include "clients/agent/discovery/probe.h"
#include "tests/property/naive_best_set.h"

namespace berth {
namespace {

using testing::Members;
using testing::NaiveBestSet;

// The devices as the node registers them, in the core's order.
NodeSpec SpecOf(const discovery::Machine& machine) {
  config::v1::Agent config;
  AddDiscovered(machine, &config);
  NodeSpec spec;
  for (const v1::Device& from : config.devices()) {
    Device& device = spec.devices.emplace_back();
    device.kind = from.kind();
    device.uuid = from.uuid();
    device.numa_node = from.numa_node();
    device.pci_bus_id = from.pci_bus_id();
  }
  const v1::DeviceTopology topology = TopologyOf(machine, config.devices());
  for (const v1::DeviceLink& link : topology.links()) {
    spec.topology.links.push_back({.link = static_cast<LinkClass>(link.link()),
                                   .count = link.count(),
                                   .mb_per_s = link.mb_per_s(),
                                   .same_package = link.same_package()});
  }
  spec.topology.between = topology.between();
  SortDevices(spec);
  return spec;
}

void CompareSome(const NodeSpec& spec, int sets) {
  const DeviceLayout layout(LayoutKeyOf(spec));
  const KindLayout* gpus = layout.Of("gpu");
  REQUIRE(gpus != nullptr);
  std::mt19937 random(7);
  const auto all = (KindMask{1} << gpus->count) - 1;
  for (int i = 0; i < sets; ++i) {
    const KindMask free = i == 0 ? all : random() & all;
    if (free == 0) continue;
    const auto size =
        1 + static_cast<int32_t>(random() % static_cast<unsigned>(std::popcount(free)));
    Members members, found;
    for (size_t device = 0; device < gpus->count; ++device) {
      if ((free >> device & 1) != 0) members.push_back(gpus->first + device);
    }
    const KindMask set = BestSet(*gpus, {.candidates = free, .size = size});
    for (size_t device = 0; device < gpus->count; ++device) {
      if ((set >> device & 1) != 0) found.push_back(gpus->first + device);
    }
    INFO("free " << free << ", size " << size);
    REQUIRE(found == NaiveBestSet(spec, members).Find(static_cast<size_t>(size)));
  }
}

TEST_CASE("the best sets of recorded machines") {
  const char* folder = getenv("BERTH_FIXTURES");
  if (folder == nullptr) {
    WARN("skipped: BERTH_FIXTURES is not set");
    return;
  }
  for (const char* name :
       {"nccl/aws-p4d-24xl-topo.xml", "nccl/ibm-gx3d-8xh100-vm.xml", "nccl/azure-ndv4-topo.xml",
        "nccl/azure-ndv2-topo.xml", "hwloc/aws-nixl/p5.48xl-topo.xml", "hwloc/nvidiaDGX2.xml",
        "hwloc/llnl-coral-lassen.xml", "hwloc/llnl-eas-tioga.xml", "hwloc/llnl-g4dnmetal.xml",
        "nccl/rtp-llm-8gpu-pcie-cx8switch.xml"}) {
    INFO(name);
    const auto machine = discovery::RunProbe(
        BERTH_PROBE, {.from = absl::StrCat(folder, "/topology/", name)}, absl::Seconds(60));
    INFO(machine.status());
    REQUIRE(machine.ok());
    const NodeSpec spec = SpecOf(*machine);
    CompareSome(spec, spec.devices.size() > 8 && machine->gpus.size() > 8 ? 15 : 60);
  }
}

}  // namespace
}  // namespace berth
