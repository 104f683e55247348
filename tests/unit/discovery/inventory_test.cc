// What the agent registers after discovery, and --discover.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/device_topology.h"
#include "clients/agent/discover_command.h"
#include "clients/agent/discovery/render.h"
#include "tests/unit/discovery/samples.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
using discovery::kTwoSockets;
using discovery::Machine;
using discovery::TemporaryFolder;

Machine Two() {
  Machine machine;
  machine.host_memory_bytes = 1000;
  machine.gpus.resize(2);
  for (uint8_t i = 0; i < 2; ++i) {
    machine.gpus[i].uuid = absl::StrCat("GPU-", i);
    machine.gpus[i].model = "H100";
    machine.gpus[i].memory_bytes = 80;
    machine.gpus[i].numa_node = i;
    machine.gpus[i].pci.bus = static_cast<uint8_t>(i + 1);
  }
  machine.nics.push_back({.name = "mlx5_0", .pci = {.bus = 9}, .port_state = "active"});
  return machine;
}

std::vector<std::string> Uuids(const config::v1::Agent& config) {
  std::vector<std::string> uuids;
  for (const v1::Device& device : config.devices())
    uuids.push_back(absl::StrCat(device.uuid(), device.unhealthy() ? " unhealthy" : ""));
  return uuids;
}

TEST_CASE("GPUs and NICs are registered with their known properties") {
  config::v1::Agent config;
  CHECK(AddDiscovered(Two(), &config).empty());
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-0", "GPU-1", "mlx5_0"});
  const v1::Device& gpu = config.devices(1);
  CHECK(gpu.kind() == "gpu");
  CHECK(gpu.model() == "H100");
  CHECK(gpu.memory_bytes() == 80);
  CHECK(gpu.numa_node() == 1);
  CHECK(gpu.pci_bus_id() == "0000:02:00.0");
  CHECK(config.devices(2).kind() == "nic");
  CHECK(config.memory_bytes() == 1000);
}

// Class, links and bandwidth of a pair: "NV2", "PIX 12600", "?".
std::string Between(const v1::DeviceTopology& topology, size_t devices, size_t a, size_t b) {
  const size_t pair = a * (2 * devices - a - 1) / 2 + (b - a - 1);
  const auto code = static_cast<uint8_t>(topology.between().at(pair));
  if (code == 0) return "?";
  const v1::DeviceLink& link = topology.links(code - 1);
  std::string text = v1::LinkClass_Name(link.link()).substr(11);
  if (link.count() > 0) absl::StrAppend(&text, " ", link.count());
  if (link.mb_per_s() > 0) absl::StrAppend(&text, " ", link.mb_per_s(), " MB/s");
  if (link.same_package()) absl::StrAppend(&text, " inside");
  return text;
}

TEST_CASE("the connections of devices are registered by their positions") {
  using discovery::LinkClass;
  Machine machine = Two();
  machine.pci = {{.link_mb_per_s = 15'750}, {.link_mb_per_s = 31'500}};
  machine.gpus[0].pci_node = 0;
  machine.gpus[1].pci_node = 1;
  machine.nics[0].pci_node = 1;
  machine.gpu_gpu.assign(2, std::vector<discovery::Distance>(2));
  machine.gpu_gpu[1][0] = {.pci = LinkClass::kSys,
                           .fabric = discovery::FabricKind::kNvlink,
                           .links = 2,
                           .same_package = true};
  machine.gpu_nic = {{{.pci = LinkClass::kSys, .same_package = true}}, {{.pci = LinkClass::kPix}}};
  machine.numa_nodes = {{.os_index = 1, .package = 0, .cpus = "8-15", .memory_bytes = 5},
                        {.os_index = 0, .package = 0, .cpus = "0-7"},
                        {.os_index = 2, .gpu_memory = true}};
  config::v1::Agent config;
  v1::Device* declared = config.add_devices();
  declared->set_kind("npu");
  declared->set_uuid("mine");
  AddDiscovered(machine, &config);
  REQUIRE(Uuids(config) == std::vector<std::string>{"mine", "GPU-0", "GPU-1", "mlx5_0"});
  v1::DeviceTopology topology = TopologyOf(machine, config.devices());
  CHECK(Between(topology, 4, 0, 1) == "?");
  CHECK(Between(topology, 4, 1, 2) == "NVLINK 2");
  CHECK(Between(topology, 4, 1, 3) == "SYS inside");
  CHECK(Between(topology, 4, 2, 3) == "PIX 25200 MB/s");  // four fifths of 31.5 GB/s
  REQUIRE(topology.numa_nodes_size() == 2);
  CHECK(topology.numa_nodes(0).cpus() == "0-7");
  CHECK(topology.numa_nodes(1).memory_bytes() == 5);
  machine.gpu_nic[1][0].pci = LinkClass::kPhb;
  topology = TopologyOf(machine, config.devices());
  CHECK(Between(topology, 4, 2, 3) == "PHB 21000 MB/s");
}

TEST_CASE("the NVLink fabric that GPUs share with other nodes is a label of the node") {
  Machine machine = Two();
  const auto label = [&machine](config::v1::Agent config = {}) {
    AddDiscovered(machine, &config);
    const auto found = config.labels().find(kCliqueLabel);
    return found == config.labels().end() ? std::string("none") : found->second;
  };
  CHECK(label() == "none");
  for (discovery::Gpu& gpu : machine.gpus) {
    gpu.fabric_state = "completed";
    gpu.fabric_cluster = "7d1c40aa-52e0-4b1f-9d60-0c5be1f2a901";
    gpu.fabric_clique = 3;
  }
  CHECK(label() == "7d1c40aa-52e0-4b1f-9d60-0c5be1f2a901.3");
  config::v1::Agent config;
  (*config.mutable_labels())[kCliqueLabel] = "mine";
  CHECK(label(config) == "mine");
  machine.gpus[1].fabric_clique = 4;
  CHECK(label() == "none");
  machine.gpus[1].fabric_clique = -1;
  machine.gpus[1].fabric_state = "in progress";
  CHECK(label() == "none");
  for (discovery::Gpu& gpu : machine.gpus) {
    gpu.fabric_state = "completed";
    gpu.fabric_cluster = "00000000-0000-0000-0000-000000000000";
    gpu.fabric_clique = 0;
  }
  CHECK(label() == "none");
}

TEST_CASE("declared values are never replaced") {
  config::v1::Agent config;
  config.set_memory_bytes(7);
  v1::Device* declared = config.add_devices();
  declared->set_kind("gpu");
  declared->set_uuid("mine");
  declared->set_pci_bus_id("00000000:01:00.0");
  v1::Device* other = config.add_devices();
  other->set_kind("special");
  other->set_uuid("mlx5_0");
  AddDiscovered(Two(), &config);
  CHECK(Uuids(config) == std::vector<std::string>{"mine", "mlx5_0", "GPU-1"});
  CHECK(config.devices(1).kind() == "special");
  CHECK(config.memory_bytes() == 7);
}

TEST_CASE("a device with a problem is registered, but not offered") {
  Machine machine = Two();
  machine.gpus[0].problem = "GPU is lost";
  machine.gpus[1].mig_enabled = true;
  machine.nics[0].port_state = "down";
  config::v1::Agent config;
  const std::string lines = absl::StrJoin(AddDiscovered(machine, &config), "\n");
  CHECK(Uuids(config) ==
        std::vector<std::string>{"GPU-0 unhealthy", "GPU-1 unhealthy", "mlx5_0 unhealthy"});
  CHECK_THAT(lines, Contains("gpu0 (GPU-0): GPU is lost"));
  CHECK_THAT(lines, Contains("gpu1 (GPU-1) is in MIG mode and has no instances"));
}

TEST_CASE("a GPU that is divided by MIG is not offered, its instances are") {
  Machine machine = Two();
  machine.gpus[1].numa_node = 1;
  machine.gpus[1].mig_enabled = true;
  machine.gpus[1].mig = {
      {.uuid = "MIG-a", .profile = "2g.20gb", .memory_bytes = 20, .gpu_instance = 3},
      {.uuid = "MIG-b", .profile = "1g.10gb", .memory_bytes = 10}};
  config::v1::Agent config;
  CHECK(AddDiscovered(machine, &config).empty());
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-0", "MIG-a", "MIG-b", "mlx5_0"});
  const v1::Device& mig = config.devices(1);
  CHECK(mig.kind() == "mig");
  CHECK(mig.model() == "2g.20gb");
  CHECK(mig.memory_bytes() == 20);
  CHECK(mig.numa_node() == 1);
  CHECK(mig.pci_bus_id() == ToString(machine.gpus[1].pci));

  // Earlier it was whole and had another instance: neither has vanished. If the GPU is gone, both
  // have.
  v1::NodeInventory known;
  *known.add_devices() = mig;
  known.mutable_devices(0)->set_uuid("MIG-old");
  *known.add_devices() = mig;
  known.mutable_devices(1)->set_kind("gpu");
  known.mutable_devices(1)->set_uuid("GPU-1");
  CHECK(AddVanished(known, &config, &machine).empty());
  CHECK(config.devices_size() == 4);
  machine.gpus.pop_back();
  std::map<std::string, std::string> vanished;
  CHECK(AddVanished(known, &config, &machine, &vanished).size() == 2);
  CHECK(vanished.size() == 2);
  CHECK(config.devices(4).unhealthy());

  machine = Two();
  machine.gpus[1].mig_enabled = true;
  machine.gpus[1].problem = "GPU is lost";
  machine.gpus[1].mig = {{.uuid = "MIG-a"}};
  config::v1::Agent lost;
  AddDiscovered(machine, &lost);
  CHECK(Uuids(lost) == std::vector<std::string>{"GPU-0", "MIG-a unhealthy", "mlx5_0"});
}

TEST_CASE("a GPU that may be divided again is registered with its instances, never as healthy") {
  Machine machine = Two();
  machine.gpus[1].mig_enabled = true;
  config::v1::Agent config;
  config.mutable_mig()->set_reconfigure(true);
  CHECK(AddDiscovered(machine, &config).empty());
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-0", "GPU-1 unhealthy", "mlx5_0"});
  CHECK(config.devices(1).kind() == "mig");
  CHECK(config.devices(1).model() == "H100");
  machine.gpus[1].mig = {{.uuid = "MIG-a", .profile = "2g.20gb"}};
  config.clear_devices();
  AddDiscovered(machine, &config);
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-0", "GPU-1 unhealthy", "MIG-a", "mlx5_0"});
  CHECK(config.devices(1).pci_bus_id() == config.devices(2).pci_bus_id());

  // Not if it is broken. A GPU that may no longer be divided has not vanished.
  v1::NodeInventory known;
  *known.add_devices() = config.devices(1);
  machine.gpus[1].problem = "GPU is lost";
  config.clear_devices();
  AddDiscovered(machine, &config);
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-0", "MIG-a unhealthy", "mlx5_0"});
  machine.gpus[1].problem.clear();
  config.clear_devices();
  config.clear_mig();
  AddDiscovered(machine, &config);
  CHECK(AddVanished(known, &config, &machine).empty());
}

TEST_CASE("a node registers a bounded number of devices, and names those left out") {
  Machine machine = Two();
  machine.nics.assign(kMaxRegisteredDevices, {});
  for (size_t i = 0; i < machine.nics.size(); ++i) {
    machine.nics[i].name = absl::StrCat("nic", i);
    machine.nics[i].pci = {.domain = static_cast<uint32_t>(i + 1)};
  }
  config::v1::Agent config;
  const auto lines = AddDiscovered(machine, &config);
  CHECK(config.devices_size() == kMaxRegisteredDevices);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[1], Contains("nic127 is not registered"));
}

TEST_CASE("a device that vanished between two starts is reported until an operator forgets it") {
  const TemporaryFolder folder;
  config::v1::Agent before;
  before.set_state_directory(folder.path());
  AddDiscovered(Two(), &before);
  v1::NodeInventory known;
  *known.mutable_devices() = before.devices();
  REQUIRE(SaveKnownDevices(known, folder.path()).ok());

  // This machine, which has no such GPUs.
  config::v1::Agent now;
  now.set_state_directory(folder.path());
  const DiscoveredDevices found = DiscoverInto(BERTH_PROBE, &now);
  CHECK_THAT(absl::StrJoin(found.lines, "\n"),
             Contains("gpu GPU-0 at PCI 0000:01:00.0 has disappeared"));
  const std::vector<std::string> uuids = Uuids(now);
  CHECK(std::count(uuids.begin(), uuids.end(), "GPU-0 unhealthy") == 1);
  CHECK(std::count(uuids.begin(), uuids.end(), "GPU-1 unhealthy") == 1);
  CHECK(found.known.devices_size() == now.devices_size());
}

TEST_CASE("declared devices do not vanish when they are no longer declared") {
  const TemporaryFolder folder;
  config::v1::Agent config;
  config.set_state_directory(folder.path());
  v1::Device* declared = config.add_devices();
  declared->set_kind("gpu");
  declared->set_uuid("mine");
  const DiscoveredDevices found = DiscoverInto(BERTH_PROBE, &config);
  for (const v1::Device& device : found.known.devices()) CHECK(device.uuid() != "mine");
}

TEST_CASE("a failed discovery is reported, and known devices are not offered") {
  const TemporaryFolder folder;
  v1::NodeInventory known;
  *known.add_devices() = [] {
    v1::Device device;
    device.set_kind("gpu");
    device.set_uuid("GPU-old");
    return device;
  }();
  REQUIRE(SaveKnownDevices(known, folder.path()).ok());
  config::v1::Agent config;
  config.set_state_directory(folder.path());
  const DiscoveredDevices found = DiscoverInto(folder.path() + "/no-probe", &config);
  CHECK_THAT(found.lines.at(0), Contains("discovery failed: "));
  CHECK(Uuids(config) == std::vector<std::string>{"GPU-old unhealthy"});
}

TEST_CASE("an invalid topology file is ignored, and the rest is registered") {
  const TemporaryFolder folder;
  config::v1::Agent config;
  config.set_state_directory(folder.path());
  config.mutable_discovery()->set_topology_file(folder.Write("bad.xml", "<topology"));
  const DiscoveredDevices found = DiscoverInto(BERTH_PROBE, &config);
  CHECK_THAT(found.lines.at(0), Contains("the topology file is ignored: ") && Contains("bad.xml"));
  CHECK(config.memory_bytes() > 0);
}

TEST_CASE("a damaged list of known devices is reported and ignored") {
  const TemporaryFolder folder;
  folder.Write("devices", "devices: [what");
  config::v1::Agent config;
  config.set_state_directory(folder.path());
  CHECK_THAT(absl::StrJoin(DiscoverInto(BERTH_PROBE, &config).lines, "\n"),
             Contains("the list of known devices is ignored"));
}

TEST_CASE("discovery as a table and as JSON, compared with nvidia-smi") {
  const TemporaryFolder folder;
  const std::string file = folder.Write("machine.xml", kTwoSockets);
  const auto text = [&](DiscoverFlags flags) {
    flags.from = file;
    return DiscoverText(BERTH_PROBE, flags, {});
  };
  REQUIRE(text({}).ok());
  CHECK_THAT(*text({}), Contains("gpu0  0000:03:00.0"));
  CHECK_THAT(*text({.output = "json"}), Contains("\"gpuGpu\""));
  CHECK(absl::IsInvalidArgument(text({.output = "xml"}).status()));
  const std::string same = folder.Write(
      "topo.txt",
      "\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tmlx5_0\tCPU Affinity\n"
      "GPU0\t X \tPIX\tPXB\tPHB\tSYS\tPIX\t0\nGPU1\tPIX\t X \tPXB\tPHB\tSYS\tPIX\t0\n"
      "GPU2\tPXB\tPXB\t X \tPHB\tSYS\tPXB\t0\nGPU3\tPHB\tPHB\tPHB\t X \tSYS\tPHB\t0\n"
      "GPU4\tSYS\tSYS\tSYS\tSYS\t X \tSYS\t0\nmlx5_0\tPIX\tPIX\tPXB\tPHB\tSYS\t X \t\n");
  const auto agreed = text({.compare = same});
  INFO(agreed.status());
  CHECK(agreed.ok());
  const std::string other = folder.Write("other.txt", "\tGPU0\tCPU Affinity\nGPU0\t X \t0\n");
  const auto differs = text({.compare = other});
  CHECK(absl::IsFailedPrecondition(differs.status()));
  CHECK_THAT(std::string(differs.status().message()), Contains("4 more GPUs here"));
  CHECK_FALSE(text({.compare = file}).ok());
  const auto bad = DiscoverText(BERTH_PROBE, {.from = folder.path() + "/none"}, {});
  CHECK(absl::IsNotFound(bad.status()));
}

}  // namespace
}  // namespace berth
