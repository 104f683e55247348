// The wire format, JSON, tables, and /sys of AMD GPUs and of NIC ports.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/agent/discovery/assemble.h"
#include "clients/agent/discovery/discover.h"
#include "clients/agent/discovery/distance.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/render.h"
#include "clients/agent/discovery/sysfs.h"
#include "clients/agent/discovery/vendors.h"
#include "clients/agent/discovery/wire.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

Machine Sample() {
  const TemporaryFolder folder;
  absl::StatusOr<Machine> machine = Discover({.from = folder.Write("machine.xml", kTwoSockets)});
  REQUIRE(machine.ok());
  machine->source = "sample";
  return *machine;
}

TEST_CASE("a machine survives encoding and decoding") {
  Machine machine = Sample();
  machine.gpus[0].mig.push_back({.uuid = "MIG-1", .profile = "1g.10gb", .slices = 1});
  machine.gpus[0].problem = "none";
  machine.warnings = {"first", ""};
  const std::string bytes = EncodeMachine(machine);
  const absl::StatusOr<Machine> back = DecodeMachine(bytes);
  REQUIRE(back.ok());
  CHECK(EncodeMachine(*back) == bytes);
  CHECK(RenderJson(*back) == RenderJson(machine));
  CHECK(back->gpus[0].mig[0].profile == "1g.10gb");
}

TEST_CASE("memory that was plugged in later counts, and memory of GPUs does not") {
  constexpr int64_t kGib = int64_t{1} << 30;
  Machine machine;
  machine.numa_nodes = {{.os_index = 0, .memory_bytes = 8 * kGib},
                        {.os_index = 1, .memory_bytes = 80 * kGib, .gpu_memory = true}};
  machine.host_memory_bytes = 8 * kGib;
  AddPluggedMemory(104 * kGib, &machine);
  CHECK(machine.host_memory_bytes == 24 * kGib);
  CHECK(machine.numa_nodes[0].memory_bytes == 24 * kGib);
  CHECK(machine.numa_nodes[1].memory_bytes == 80 * kGib);
  AddPluggedMemory(90 * kGib, &machine);  // less than the nodes have: they are right
  CHECK(machine.host_memory_bytes == 24 * kGib);
  machine.numa_nodes[1].gpu_memory = false;
  machine.host_memory_bytes = 104 * kGib;
  AddPluggedMemory(128 * kGib, &machine);
  CHECK(machine.host_memory_bytes == 128 * kGib);  // of which node, nobody says
  CHECK(machine.numa_nodes[0].memory_bytes == 24 * kGib);
}

TEST_CASE("damaged bytes on the wire are refused, or decode to another valid machine") {
  const std::string bytes = EncodeMachine(Sample());
  for (size_t size = 0; size < bytes.size(); size += 7)
    CHECK_FALSE(DecodeMachine(bytes.substr(0, size)).ok());
  CHECK_FALSE(DecodeMachine(bytes + "x").ok());
  CHECK_FALSE(DecodeMachine(std::string(kMaxWireBytes + 1, 'x')).ok());
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    const absl::StatusOr<Machine> machine = DecodeMachine(damaged);
    if (machine.ok()) CHECK_FALSE(RenderTable(*machine).empty());  // must not fail on any machine
  }
}

TEST_CASE("JSON output is valid, with every device") {
  Machine machine = Sample();
  machine.gpus[0].model = "quote \" back \\ line \n \xff \xc3\xa9";
  machine.gpus[1].model = "\xed\xa0\x80 \x7f \xe2\x82";  // a surrogate, DEL, half a character
  const YAML::Node json = YAML::Load(RenderJson(machine));
  CHECK(json["gpus"].size() == 7);
  CHECK(json["gpus"][0]["pci"].as<std::string>() == "0000:03:00.0");
  CHECK(json["gpus"][0]["model"].as<std::string>() == "quote \" back \\ line \n ? \xc3\xa9");
  CHECK(json["gpus"][1]["model"].as<std::string>() == "? \x7f ?");
  CHECK(json["gpuNic"][0][0]["pci"].as<std::string>() == "PIX");
  CHECK(json["gpuGpu"][5][6]["fabric"].as<std::string>() == "xgmi");
  CHECK(json["numaNodes"][1]["memoryBytes"].as<int64_t>() == int64_t{2} << 30);
}

TEST_CASE("the table draws the tree and the matrix") {
  const std::string table = RenderTable(Sample());
  CHECK_THAT(table, Contains("sample  3.0 GiB\npackage 0  Sample CPU\n"));
  CHECK_THAT(table, Contains("│     │  └─ gpu0  0000:03:00.0  Sample H100  80.0 GiB  GPU-1111"));
  CHECK_THAT(table, Contains("\ngpu2  PXB   PXB   X "));
  Machine machine = Sample();
  machine.gpus[0].model = "a\x1b[31mb";
  CHECK_THAT(RenderTable(machine), Contains("a?[31mb"));
  CHECK_THAT(RenderTable(Machine()), Contains("no GPUs"));
}

TEST_CASE("accelerators by vendor and class") {
  const auto kind = [](int32_t vendor, int32_t class_id) {
    const Accelerator* found = FindAccelerator(vendor, class_id);
    return found == nullptr ? std::string() : absl::StrCat(found->vendor, " ", found->kind);
  };
  CHECK(kind(0x10de, 0x0302) == "nvidia gpu");
  CHECK(kind(0x10de, 0x0300) == "nvidia gpu");
  CHECK(kind(0x10de, 0x0680).empty());
  CHECK(kind(0x1002, 0x0380) == "amd gpu");
  CHECK(kind(0x1002, 0x1200) == "amd gpu");
  CHECK(kind(0x1002, 0x0300).empty());
  CHECK(kind(0x19e5, 0x1200) == "ascend npu");
  CHECK(kind(0x19e5, 0x0300).empty());
  CHECK(kind(0xcabc, 0x1200) == "cambricon npu");
  CHECK(kind(0x1d94, 0x0380) == "hygon gpu");
  CHECK(kind(0x1e3e, 0x0302) == "iluvatar gpu");
  CHECK(kind(0x1d0f, 0x0300).empty());
  CHECK(kind(0, 0).empty());
}

TEST_CASE("one end of a link may be missing, unknown places have no class") {
  Machine machine;
  machine.gpus.resize(3);
  for (uint8_t i = 0; i < 3; ++i) machine.gpus[i].pci.bus = i;
  machine.gpus[0].links = {{.peer = PeerKind::kGpu, .address = {.bus = 1}, .count = 3}};
  ComputeDistances(&machine);
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV3");
  CHECK(Label(machine.gpu_gpu[1][0]) == "NV3");
  CHECK(Label(machine.gpu_gpu[0][2]) == "?");
  machine.gpus[1].links = {{.peer = PeerKind::kGpu, .address = {}, .count = 2}};
  ComputeDistances(&machine);
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV2");  // one of them is down on the other side
  machine.gpus[0].links = machine.gpus[1].links = {{.peer = PeerKind::kCpu, .count = 3}};
  ComputeDistances(&machine);
  CHECK(Label(machine.gpu_gpu[0][1]) == "?");
}

// A function with two compute nodes, one with none, one with one: linked by XGMI.
Machine AmdMachine() {
  Machine machine;
  for (const uint8_t bus : {uint8_t{0x0c}, uint8_t{0x15}, uint8_t{0x1e}}) {
    machine.pci.push_back({.address = {.bus = bus}, .vendor = kVendorAmd, .device = 0x74a1});
    machine.gpus.push_back({.vendor = "amd",
                            .pci = {.bus = bus},
                            .pci_node = static_cast<int32_t>(machine.pci.size()) - 1});
  }
  return machine;
}
void WriteNode(const TemporaryFolder& folder, int number, int location, int xgmi_to) {
  const std::string node = absl::StrCat("sys/class/kfd/kfd/topology/nodes/", number);
  folder.Write(node + "/properties",
               absl::StrCat("cpu_cores_count 0\nsimd_count 304\nlocation_id ", location,
                            "\ndomain 0\nunique_id 255\ndrm_render_minor ", 127 + number, "\n"));
  folder.Write(node + "/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1073741824\n");
  folder.Write(node + "/io_links/0/properties",
               absl::StrCat("type 11\nnode_from ", number, "\nnode_to ", xgmi_to,
                            "\nmax_bandwidth 64000\n"));
}

TEST_CASE("AMD GPUs from the kernel only: partitions, XGMI, memory, UUID") {
  const TemporaryFolder folder;
  folder.Write("sys/class/kfd/kfd/topology/nodes/0/properties",
               "cpu_cores_count 96\nsimd_count 0\n");
  WriteNode(folder, 1, 0x0c00, 10);
  WriteNode(folder, 2, 0x0c01, 10);
  WriteNode(folder, 10, 0x1e00, 1);
  folder.Write("sys/bus/pci/devices/0000:1e:00.0/unique_id", "A1B2C3D4E5F60718\n");
  folder.Write("sys/bus/pci/devices/0000:1e:00.0/mem_info_vram_total", "206141652992\n");
  Machine machine = AmdMachine();
  JoinAmd(folder.path(), &machine);
  NameGpusWithoutUuid(&machine);
  ComputeDistances(&machine);
  REQUIRE(machine.gpus.size() == 4);
  CHECK(machine.gpus[0].partition == 0);
  CHECK(machine.gpus[0].memory_bytes == int64_t{1} << 30);
  CHECK(machine.gpus[1].uuid == "PCI-0000:0c:00.0-p1");
  CHECK(machine.gpus[1].render_minor == 129);
  CHECK(machine.gpus[1].compute_index == 1);
  CHECK_THAT(machine.gpus[2].problem, Contains("no compute node"));
  CHECK(machine.gpus[2].render_minor == -1);
  CHECK(machine.gpus[3].uuid == "GPU-a1b2c3d4e5f60718");
  CHECK(machine.gpus[3].render_minor == 137);
  CHECK(machine.gpus[3].compute_index == 2);
  CHECK(machine.gpus[3].model == "Instinct MI300X");
  CHECK(machine.gpus[3].memory_bytes == 206141652992);
  CHECK(Label(machine.gpu_gpu[0][3]) == "XGMI");
  CHECK(machine.gpu_gpu[3][0].mb_per_s == 64000);
}

TEST_CASE("AMD GPUs without the compute driver remain as in the PCI tree") {
  const TemporaryFolder folder;
  Machine machine = AmdMachine();
  JoinAmd(folder.path(), &machine);
  REQUIRE(machine.gpus.size() == 3);
  CHECK(machine.gpus[0].problem.empty());
  CHECK(machine.gpus[0].model == "Instinct MI300X");
}

TEST_CASE("ports of NICs") {
  const TemporaryFolder folder;
  folder.Write("sys/class/infiniband/mlx5_0/node_guid", "a088:c203:0001:0002\n");
  folder.Write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  folder.Write("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  folder.Write("sys/class/net/hsi0/operstate", "up\n");
  folder.Write("sys/class/net/hsi0/speed", "200000\n");
  Machine machine;
  machine.nics = {
      {.name = "mlx5_0"}, {.name = "hsi0", .kind = NicKind::kSlingshot}, {.name = "../../../etc"}};
  JoinNicPorts(folder.path(), &machine);
  CHECK(machine.nics[0].guid == "a088:c203:0001:0002");
  CHECK(machine.nics[0].port_state == "down");
  CHECK(machine.nics[0].megabits_per_s == 400000);
  CHECK(machine.nics[1].port_state == "active");
  CHECK(machine.nics[1].megabits_per_s == 200000);
  CHECK(machine.nics[2].port_state.empty());
}

}  // namespace
}  // namespace berth::discovery
