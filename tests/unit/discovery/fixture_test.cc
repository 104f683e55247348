// Real machines, from a folder outside the source tree: BERTH_FIXTURES, which holds topology/.
// Without it these cases are skipped.
#include <stdlib.h>
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/distance.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/probe.h"
#include "clients/agent/discovery/topo_matrix.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

std::string Fixtures() {
  const char* folder = getenv("BERTH_FIXTURES");
  return folder == nullptr ? "" : absl::StrCat(folder, "/topology");
}
#define BERTH_NEEDS_FIXTURES()                  \
  if (Fixtures().empty()) {                     \
    WARN("skipped: BERTH_FIXTURES is not set"); \
    return;                                     \
  }

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

absl::StatusOr<Machine> Probe(const std::string& from) {
  return RunProbe(BERTH_PROBE, {.from = from}, absl::Seconds(60));
}

Machine MustProbe(const std::string& from) {
  absl::StatusOr<Machine> machine = Probe(from);
  INFO(machine.status());
  REQUIRE(machine.ok());
  return *machine;
}

std::vector<std::string> FilesBelow(const std::string& folder, const std::string& extension) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Differences between the machine and one entry of the expected classes.
std::vector<std::string> Differences(const Machine& machine, const YAML::Node& expected) {
  std::map<std::string, size_t> gpus;
  std::map<std::string, size_t> nics;
  for (size_t i = 0; i < machine.gpus.size(); ++i) gpus[ToString(machine.gpus[i].pci)] = i;
  for (size_t i = 0; i < machine.nics.size(); ++i) nics[machine.nics[i].name] = i;
  std::vector<std::string> differences;
  const auto compare = [&](const Distance& ours, const YAML::Node& cell, const std::string& pair) {
    if (cell.as<std::string>() != Name(ours.pci))
      differences.push_back(absl::StrCat(pair, ": ", Name(ours.pci)));
  };
  for (size_t i = 0; i < expected["gpus"].size(); ++i) {
    const std::string from = expected["gpus"][i][1].as<std::string>();
    for (size_t j = 0; j < expected["gpus"].size(); ++j) {
      const std::string to = expected["gpus"][j][1].as<std::string>();
      compare(machine.gpu_gpu.at(gpus.at(from)).at(gpus.at(to)), expected["gpu_gpu"][i][j],
              from + " " + to);
    }
    for (size_t j = 0; j < expected["nics"].size(); ++j) {
      const std::string to = expected["nics"][j][0].as<std::string>();
      compare(machine.gpu_nic.at(gpus.at(from)).at(nics.at(to)), expected["gpu_nic"][i][j],
              from + " " + to);
    }
  }
  return differences;
}

TEST_CASE("distance classes of the recorded machines") {
  BERTH_NEEDS_FIXTURES();
  const YAML::Node all = YAML::Load(ReadAll(Fixtures() + "/expected/hwloc-distance-classes.json"));
  size_t machines = 0;
  for (const auto& entry : all) {
    const std::string name = entry.first.as<std::string>();
    INFO(name);
    const Machine machine = MustProbe(absl::StrCat(Fixtures(), "/hwloc/", name, ".xml"));
    CHECK(machine.gpus.size() == entry.second["gpus"].size());
    const auto fabrics =
        std::count_if(machine.nics.begin(), machine.nics.end(),
                      [](const Nic& nic) { return nic.kind == NicKind::kOpenFabrics; });
    CHECK(static_cast<size_t>(fabrics) == entry.second["nics"].size());
    CHECK(Differences(machine, entry.second) == std::vector<std::string>());
    ++machines;
  }
  CHECK(machines == 13);
}

TEST_CASE("all recorded hwloc files load, except those of version 3") {
  BERTH_NEEDS_FIXTURES();
  size_t loaded = 0;
  for (const std::string& file : FilesBelow(Fixtures() + "/hwloc", ".xml")) {
    INFO(file);
    const absl::StatusOr<Machine> machine = Probe(file);
    if (absl::StrContains(file, "v3-unloadable")) {
      REQUIRE_FALSE(machine.ok());
      CHECK_THAT(std::string(machine.status().message()),
                 Contains(file) && Contains("version 3.0"));
    } else {
      INFO(machine.status());
      CHECK(machine.ok());
      ++loaded;
    }
  }
  CHECK(loaded == 28);
}

TEST_CASE("all recorded NCCL and RCCL files load, with their links") {
  BERTH_NEEDS_FIXTURES();
  size_t loaded = 0;
  for (const std::string& file : FilesBelow(Fixtures() + "/nccl", ".xml")) {
    if (absl::StrContains(file, "graph")) continue;
    INFO(file);
    const absl::StatusOr<Machine> machine = Probe(file);
    INFO(machine.status());
    CHECK(machine.ok());
    ++loaded;
  }
  CHECK(loaded > 60);
  const Machine ibm = MustProbe(Fixtures() + "/nccl/ibm-gx3d-8xh100-vm.xml");
  CHECK(Label(ibm.gpu_gpu[0][7]) == "NV18");
  const Machine amd = MustProbe(Fixtures() + "/nccl/rccl/topo_8p_940.xml");
  REQUIRE(amd.gpus.size() == 8);
  CHECK(Label(amd.gpu_gpu[0][7]) == "XGMI");
}

TEST_CASE("a hypervisor hides the switches of p4d, the provider's file restores them") {
  BERTH_NEEDS_FIXTURES();
  const std::string seen = Fixtures() + "/hwloc/aws-nixl/p4d.24xl-topo.xml";
  const Machine bare = MustProbe(seen);
  CHECK(Label(bare.gpu_nic[0][0]) == "PHB");
  const absl::StatusOr<Machine> restored = RunProbe(
      BERTH_PROBE, {.from = seen, .topology_file = Fixtures() + "/nccl/aws-p4d-24xl-topo.xml"},
      absl::Seconds(60));
  REQUIRE(restored.ok());
  CHECK(Label(restored->gpu_nic[0][0]) == "PIX");
  CHECK(Label(restored->gpu_gpu[0][1]) == "PIX");
  CHECK(Label(restored->gpu_gpu[0][2]) == "PHB");
  CHECK(restored->gpus[0].model == bare.gpus[0].model);
}

TEST_CASE("links that are saved with the machine") {
  BERTH_NEEDS_FIXTURES();
  const Machine dgx2 = MustProbe(Fixtures() + "/hwloc/nvidiaDGX2.xml");
  CHECK(Label(dgx2.gpu_gpu[0][15]) == "NV6");
  CHECK(dgx2.gpu_gpu[0][15].mb_per_s == 150000);
  const Machine power8 = MustProbe(Fixtures() + "/hwloc/power8gpudistances.xml");
  CHECK(Label(power8.gpu_gpu[0][1]) == "NV2");
  CHECK(Label(power8.gpu_gpu[0][2]) == "SYS");
  const Machine divided = MustProbe(Fixtures() + "/hwloc/flux-core-tuo.CPX.xml");
  CHECK(divided.gpus.size() == 24);
  CHECK(divided.gpus[23].partition == 5);
  CHECK(Label(divided.gpu_gpu[0][23]) == "XGMI");
  CHECK(divided.nics.size() == 4);
}

TEST_CASE("GPU memory of POWER9 is not host memory") {
  BERTH_NEEDS_FIXTURES();
  const Machine old = MustProbe(Fixtures() + "/hwloc/flux-core-sierra.xml");
  int64_t gpu_nodes = 0;
  for (const NumaNode& node : old.numa_nodes) gpu_nodes += node.gpu_memory;
  CHECK(gpu_nodes == 4);
  const TemporaryFolder folder;
  const std::string tarball = Fixtures() + "/hwloc/sysfs-tarballs/nvidiagpunumanodes.tar.bz2";
  REQUIRE(system(absl::StrCat("tar xjf '", tarball, "' -C '", folder.path(), "'").c_str()) == 0);
  const Machine root = MustProbe(folder.path() + "/nvidiagpunumanodes");
  for (const NumaNode& node : root.numa_nodes) CHECK((node.gpu_memory || node.os_index < 16));
  CHECK(root.host_memory_bytes / (int64_t{1} << 30) == 251);
}

TEST_CASE("a copied /sys of a server shows its NIC with port and speed") {
  BERTH_NEEDS_FIXTURES();
  const TemporaryFolder folder;
  const std::string tarball =
      Fixtures() + "/hwloc/sysfs-tarballs/40intel64-2g2n4c+pcilocality.tar.bz2";
  REQUIRE(system(absl::StrCat("tar xjf '", tarball, "' -C '", folder.path(), "'").c_str()) == 0);
  const Machine machine = MustProbe(folder.path() + "/40intel64-2g2n4c+pci");
  REQUIRE(machine.nics.size() == 1);
  CHECK(machine.nics[0].name == "qib0");
  CHECK(machine.nics[0].megabits_per_s == 40000);
  CHECK(machine.numa_nodes.size() == 4);
}

TEST_CASE("all recorded topo -m tables are read") {
  BERTH_NEEDS_FIXTURES();
  size_t tables = 0;
  for (const std::string& file : FilesBelow(Fixtures() + "/nvsmi", ".txt")) {
    if (!absl::StrContains(file, "/topo-m")) continue;
    INFO(file);
    const auto matrix = ParseTopoMatrix(ReadAll(file));
    INFO(matrix.status());
    CHECK(matrix.ok());
    ++tables;
  }
  CHECK(tables == 10);
}

// AC922: hwloc's view of one, and nvidia-smi's of another. hwloc's file has no NVLinks. With the
// three links of each pair added, every cell must agree.
TEST_CASE("our classes of an AC922 equal those of nvidia-smi") {
  BERTH_NEEDS_FIXTURES();
  Machine machine = MustProbe(Fixtures() + "/hwloc/llnl-coral-lassen.xml");
  const auto matrix = ParseTopoMatrix(ReadAll(Fixtures() + "/nvsmi/topo-m.power9-4gpu-nv3.txt"));
  REQUIRE(matrix.ok());
  REQUIRE(machine.gpus.size() == 4);
  CHECK(CompareWithTopo(machine, *matrix).size() == 2);  // the two pairs with NVLink
  for (size_t i = 0; i < 4; ++i) {
    machine.gpus[i].links = {
        {.peer = PeerKind::kGpu, .address = machine.gpus[i ^ 1].pci, .count = 3}};
  }
  ComputeDistances(&machine);
  CHECK(CompareWithTopo(machine, *matrix) == std::vector<std::string>());
}

}  // namespace
}  // namespace berth::discovery
