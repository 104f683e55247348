// NVML: a real shared library, loaded like NVIDIA's.
#include <stdlib.h>

#include <catch2/catch.hpp>

#include "clients/agent/discovery/distance.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/nvml_join.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

// The PCI tree's view: three GPUs on one host bridge.
Machine Bare() {
  Machine machine;
  machine.pci.push_back({.kind = PciKind::kHostBridge, .numa_nodes = {0}});
  for (uint8_t i = 0; i < 3; ++i) {
    const PciAddress address{.bus = static_cast<uint8_t>(0x10 + i)};
    machine.pci.push_back({.parent = 0, .address = address, .numa_nodes = {0}});
    machine.gpus.push_back(
        {.vendor = "nvidia", .model = "by PCI", .pci = address, .pci_node = i + 1});
  }
  return machine;
}

Machine Join(const char* failure, const char* library = BERTH_FAKE_NVML_LIBRARY) {
  setenv("BERTH_FAKE_NVML", failure, 1);
  Machine machine = Bare();
  JoinNvmlLibrary(library, &machine);
  unsetenv("BERTH_FAKE_NVML");
  ComputeDistances(&machine);
  return machine;
}

TEST_CASE("NVML reports model, UUID, memory, links, fabric, MIG and ECC") {
  const Machine machine = Join("");
  REQUIRE(machine.gpus.size() == 3);
  CHECK(machine.warnings.empty());
  CHECK(machine.nvidia_driver == "555.42.06");
  const Gpu& gpu = machine.gpus[0];
  CHECK(gpu.uuid == "GPU-fake-1");
  CHECK(gpu.model == "NVIDIA Fake");
  CHECK(gpu.memory_bytes == int64_t{80} << 30);
  CHECK(gpu.compute_capability == "9.0");
  CHECK(gpu.problem.empty());
  REQUIRE(gpu.links.size() == 2);
  CHECK(gpu.fabric_cluster == "01020304-0506-0708-090a-0b0c0d0e0f10");
  CHECK(gpu.fabric_clique == 7);
  CHECK(gpu.fabric_state == "completed");
  CHECK(gpu.ecc_enabled == 1);
  CHECK(gpu.ecc_corrected == 5);
  CHECK(gpu.ecc_uncorrected == 1);
  CHECK(gpu.remap_pending == 0);
  CHECK(machine.gpus[1].remap_pending == 1);
  CHECK(machine.gpus[2].ecc_enabled == 0);
  CHECK(machine.gpus[2].ecc_corrected == -1);
  CHECK(machine.gpus[2].compute_capability.empty());
}

TEST_CASE("NVLinks are counted per peer, and a hidden switch connects the GPUs that link to it") {
  Machine machine = Join("");
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV4");
  CHECK(Label(machine.gpu_gpu[0][2]) == "PHB");
  for (Gpu& gpu : machine.gpus)
    std::erase_if(gpu.links, [](const FabricLink& link) { return link.peer == PeerKind::kGpu; });
  ComputeDistances(&machine);
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV2");
}

TEST_CASE("MIG instances are read if MIG is on") {
  const Machine machine = Join("");
  CHECK_FALSE(machine.gpus[0].mig_enabled);
  CHECK(machine.gpus[2].mig_enabled);
  REQUIRE(machine.gpus[2].mig.size() == 2);
  const MigInstance& mig = machine.gpus[2].mig[1];
  CHECK(mig.uuid == "MIG-fake-103");
  CHECK(mig.profile == "3g.40gb");
  CHECK(mig.gpu_instance == 4);
  CHECK(mig.slices == 3);
  CHECK(mig.memory_bytes == int64_t{40448} << 20);
}

TEST_CASE("a driver that is too old for a function omits its values") {
  const Machine machine = Join("", BERTH_FAKE_NVML_OLD_LIBRARY);
  const Gpu& gpu = machine.gpus[0];
  CHECK(gpu.uuid == "GPU-fake-1");
  CHECK(gpu.problem.empty());
  CHECK(gpu.fabric_state.empty());
  CHECK_FALSE(machine.gpus[2].mig_enabled);
  CHECK(gpu.remap_pending == 0);  // pages, not rows
  CHECK(machine.gpus[1].remap_pending == 1);
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV4");  // peers are distinguished by address
  CHECK(machine.gpus[0].compute_capability.empty());
  CHECK(gpu.links.size() == 2);
}

TEST_CASE("a GPU that fell off the bus is reported, not forgotten") {
  const Machine gone = Join("handle");
  REQUIRE(gone.gpus.size() == 3);
  CHECK(gone.gpus[0].problem.empty());
  CHECK(gone.gpus[1].problem == "NVML does not report it");
  CHECK(gone.gpus[1].model == "by PCI");
  REQUIRE(gone.warnings.size() == 1);
  CHECK_THAT(gone.warnings[0], Contains("GPU 1: GPU is lost"));
  const Machine lost = Join("lost");
  CHECK_THAT(lost.gpus[1].problem, Contains("GPU is lost"));
  CHECK(lost.gpus[2].problem.empty());
}

TEST_CASE("a missing library is no problem, a broken one is") {
  Machine machine = Join("", "libberth-there-is-none.so.1");
  CHECK(machine.warnings.empty());
  CHECK(machine.gpus[0].problem.empty());
  machine = Join("", "/nonexistent/libnvidia-ml.so.1");
  CHECK(machine.warnings.empty());

  machine = Join("init");
  REQUIRE(machine.warnings.size() == 1);
  CHECK_THAT(machine.warnings[0], Contains("does not start: Driver Not Loaded"));
  CHECK_FALSE(machine.gpus[0].problem.empty());

  machine = Join("count");
  CHECK_THAT(machine.warnings[0], Contains("cannot count the GPUs"));
  CHECK(machine.gpus[0].problem == "NVML does not report it");

  const TemporaryFolder folder;
  machine = Join("", folder.Write("libnvidia-ml.so.1", "no library").c_str());
  REQUIRE(machine.warnings.size() == 1);
  CHECK_FALSE(machine.gpus[0].problem.empty());
}

TEST_CASE("a library without any of the functions does not start") {
  const auto library = NvmlLibrary::Open("libm.so.6");
  REQUIRE_FALSE(library.ok());
  CHECK(absl::IsInternal(library.status()));
}

TEST_CASE("a GPU that only NVML reports has no place in the tree") {
  setenv("BERTH_FAKE_NVML", "", 1);
  Machine machine = Bare();
  machine.gpus.erase(machine.gpus.begin() + 1);
  JoinNvmlLibrary(BERTH_FAKE_NVML_LIBRARY, &machine);
  ComputeDistances(&machine);
  REQUIRE(machine.gpus.size() == 3);
  CHECK(machine.gpus[1].uuid == "GPU-fake-2");
  CHECK(machine.gpus[1].pci_node == -1);
  CHECK(Label(machine.gpu_gpu[0][1]) == "NV4");
  CHECK(Label(machine.gpu_gpu[1][2]) == "?");
  CHECK_THAT(machine.warnings.at(0), Contains("0000:11:00.0 is not in the PCI tree"));
}

}  // namespace
}  // namespace berth::discovery
