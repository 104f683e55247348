// nvidia-smi's table.
#include "clients/agent/discovery/topo_matrix.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

constexpr char kTable[] =
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV6\tPIX\t0-15,32-47\t0\t\tN/A\n"
    "GPU1\tNV6\t X \tSYS\t16-31,48-63\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "  X    = Self\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_4\n";

TEST_CASE("the table is read, with names from its legend") {
  const auto matrix = ParseTopoMatrix(kTable);
  INFO(matrix.status());
  REQUIRE(matrix.ok());
  REQUIRE(matrix->devices.size() == 3);
  CHECK(matrix->devices[2].name == "mlx5_4");
  CHECK_FALSE(matrix->devices[2].is_gpu);
  CHECK(matrix->devices[1].numa_node == 1);
  CHECK(matrix->devices[0].cpus == "0-15,32-47");
  CHECK(matrix->cells[0][1].links == 6);
  CHECK(matrix->cells[1][2].pci == LinkClass::kSys);
}

TEST_CASE("truncated or contradictory tables are refused") {
  const auto refusal = [](const std::string& from, const std::string& to) {
    const auto matrix = ParseTopoMatrix(absl::StrReplaceAll(kTable, {{from, to}}));
    REQUIRE_FALSE(matrix.ok());
    return std::string(matrix.status().message());
  };
  CHECK_THAT(refusal("GPU1\tNV6\t X ", "GPU1\tNV4\t X "), Contains("disagree"));
  CHECK_THAT(refusal("GPU1\tNV6", "GPU7\tNV6"), Contains("the row of GPU1"));
  CHECK_THAT(refusal("\tSYS\t X ", "\tSYS"), Contains("no distance"));
  CHECK_THAT(refusal("PIX", "PIXX"), Contains("line 2: no distance from GPU0 to NIC0"));
  CHECK_THAT(refusal("NV6", "NV0"), Contains("no distance"));
  const std::string text = kTable;
  CHECK_FALSE(ParseTopoMatrix("").ok());
  CHECK_FALSE(ParseTopoMatrix("no table\n").ok());
  CHECK_FALSE(ParseTopoMatrix(text.substr(0, text.find("NIC0\tPIX"))).ok());
}

TEST_CASE("the comparison names each cell that differs") {
  Machine machine;
  machine.gpus.resize(2);
  machine.gpus[0].vendor = machine.gpus[1].vendor = "nvidia";
  machine.nics.push_back({.name = "mlx5_4"});
  const Distance pair{.pci = LinkClass::kPix, .fabric = FabricKind::kNvlink, .links = 6};
  machine.gpu_gpu = {{{.pci = LinkClass::kSelf}, pair}, {pair, {.pci = LinkClass::kSelf}}};
  machine.gpu_nic = {{{.pci = LinkClass::kPix}}, {{.pci = LinkClass::kNode}}};
  const auto matrix = ParseTopoMatrix(kTable);
  REQUIRE(matrix.ok());
  CHECK(CompareWithTopo(machine, *matrix) ==
        std::vector<std::string>{"GPU1 to mlx5_4: NODE here, SYS in the table"});
  machine.gpu_nic[1][0].pci = LinkClass::kSys;
  CHECK(CompareWithTopo(machine, *matrix).empty());
  machine.nics[0].name = "mlx5_5";
  machine.gpus.pop_back();
  CHECK(CompareWithTopo(machine, *matrix) ==
        std::vector<std::string>{"GPU1 was not found here", "mlx5_4 was not found here"});
}

}  // namespace
}  // namespace berth::discovery
