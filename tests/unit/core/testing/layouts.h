// Machines whose devices are connected as given by a matrix in the terms of `nvidia-smi topo -m`.
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_LAYOUTS_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_LAYOUTS_H_

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"
#include "core/model/node.h"

// Designated initialisers are used; omitted fields are meant to be empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::testing {

struct Matrix {
  std::string name;
  int gpus = 0;
  std::vector<std::string> rows;   // of all devices, GPUs first, then NICs
  std::vector<int32_t> numa = {};  // by device; none: all 0
};

// "SYS+": SYS inside one socket.
inline DeviceLink LinkFrom(const std::string& cell) {
  static const std::map<std::string, LinkClass> kClasses = {
      {"PIX", LinkClass::kPix},   {"PXB", LinkClass::kPxb}, {"PHB", LinkClass::kPhb},
      {"NODE", LinkClass::kNode}, {"SYS", LinkClass::kSys}, {"SYS+", LinkClass::kSys}};
  if (cell == "?") return {};
  if (cell.substr(0, 2) == "NV") {
    return {.link = LinkClass::kNvlink, .count = std::atoi(cell.c_str() + 2)};
  }
  return {.link = kClasses.at(cell), .same_package = cell == "SYS+"};
}

inline DeviceTopology TopologyFrom(const Matrix& matrix) {
  DeviceTopology topology;
  std::map<std::string, char> codes = {{"?", '\0'}};
  for (size_t a = 0; a < matrix.rows.size(); ++a) {
    const std::vector<std::string> cells =
        absl::StrSplit(matrix.rows[a], absl::ByAnyChar(" \t"), absl::SkipEmpty());
    BERTH_CHECK(cells.size() == matrix.rows.size() && cells[a] == "X");
    for (size_t b = a + 1; b < cells.size(); ++b) {
      if (!codes.contains(cells[b])) {
        topology.links.push_back(LinkFrom(cells[b]));
        codes[cells[b]] = static_cast<char>(topology.links.size());
      }
      topology.between += codes.at(cells[b]);
    }
  }
  return topology;
}

// The matrix's GPUs and NICs, connected as it says.
inline void SetDevices(const Matrix& matrix, NodeSpec* spec) {
  spec->devices.clear();
  for (size_t i = 0; i < matrix.rows.size(); ++i) {
    const bool gpu = i < static_cast<size_t>(matrix.gpus);
    const size_t number = gpu ? i : i - static_cast<size_t>(matrix.gpus);
    spec->devices.push_back({.kind = gpu ? "gpu" : "nic",
                             .uuid = absl::StrCat(gpu ? "gpu" : "nic", number),
                             .model = gpu ? "H100" : "CX7",
                             .memory_bytes = gpu ? int64_t{80} << 30 : 0,
                             .numa_node = matrix.numa.empty() ? 0 : matrix.numa[i],
                             .pci_bus_id = absl::StrFormat("0000:%02x:00.0", number)});
  }
  spec->topology = TopologyFrom(matrix);
}

// Blocks of equal size: `near` inside, `far` between them.
inline std::vector<std::string> BlockRows(int devices, int block, const std::string& near,
                                          const std::string& far) {
  std::vector<std::string> rows;
  for (int a = 0; a < devices; ++a) {
    std::string row;
    for (int b = 0; b < devices; ++b) {
      absl::StrAppend(&row, b == 0 ? "" : " ",
                      a == b ? "X" : (a / block == b / block ? near : far));
    }
    rows.push_back(row);
  }
  return rows;
}

inline std::vector<int32_t> HalfAndHalf(int devices) {
  std::vector<int32_t> numa;
  for (int i = 0; i < devices; ++i) numa.push_back(i < devices / 2 ? 0 : 1);
  return numa;
}

// Adds `each` NICs for every `share` GPUs, which are `near` to these, NODE to GPUs of the same NUMA
// node and SYS to others.
inline Matrix WithNics(Matrix matrix, int share, int each, const std::string& near) {
  const int nics = matrix.gpus / share * each;
  const auto cell = [&](int gpu, int nic) -> std::string {
    if (gpu / share == nic / each) return near;
    const int beside = nic / each * share;
    const auto& numa = matrix.numa;
    return numa[static_cast<size_t>(gpu)] == numa[static_cast<size_t>(beside)] ? "NODE" : "SYS";
  };
  for (int gpu = 0; gpu < matrix.gpus; ++gpu) {
    for (int nic = 0; nic < nics; ++nic) {
      absl::StrAppend(&matrix.rows[static_cast<size_t>(gpu)], " ", cell(gpu, nic));
    }
  }
  for (int nic = 0; nic < nics; ++nic) {
    std::string row;
    for (int gpu = 0; gpu < matrix.gpus; ++gpu) absl::StrAppend(&row, cell(gpu, nic), " ");
    for (int other = 0; other < nics; ++other) absl::StrAppend(&row, other == nic ? "X " : "? ");
    matrix.rows.push_back(row);
  }
  for (int nic = 0; nic < nics; ++nic) {
    matrix.numa.push_back(matrix.numa[static_cast<size_t>(nic / each * share)]);
  }
  return matrix;
}

// V100 in two quads: a hybrid cube mesh.
inline Matrix Dgx1() {
  return {.name = "DGX-1",
          .gpus = 8,
          .rows = {"X   NV1 NV1 NV2 NV2 SYS SYS SYS", "NV1 X   NV2 NV1 SYS NV2 SYS SYS",
                   "NV1 NV2 X   NV2 SYS SYS NV1 SYS", "NV2 NV1 NV2 X   SYS SYS SYS NV1",
                   "NV2 SYS SYS SYS X   NV1 NV1 NV2", "SYS NV2 SYS SYS NV1 X   NV2 NV1",
                   "SYS SYS NV1 SYS NV1 NV2 X   NV2", "SYS SYS SYS NV1 NV2 NV1 NV2 X  "},
          .numa = HalfAndHalf(8)};
}
inline Matrix Dgx2() {
  return {
      .name = "DGX-2", .gpus = 16, .rows = BlockRows(16, 16, "NV6", ""), .numa = HalfAndHalf(16)};
}
inline Matrix HgxH100() {
  return WithNics(
      {.name = "HGX H100", .gpus = 8, .rows = BlockRows(8, 8, "NV18", ""), .numa = HalfAndHalf(8)},
      1, 1, "PIX");
}
inline Matrix P4d() {
  return WithNics(
      {.name = "p4d", .gpus = 8, .rows = BlockRows(8, 8, "NV12", ""), .numa = HalfAndHalf(8)}, 2, 1,
      "PIX");
}
inline Matrix P5() {
  return WithNics(
      {.name = "p5", .gpus = 8, .rows = BlockRows(8, 8, "NV18", ""), .numa = HalfAndHalf(8)}, 1, 4,
      "PIX");
}
inline Matrix Mi250x() {
  return {
      .name = "MI250X",
      .gpus = 8,
      .rows = {"X    NV4  NV1  SYS+ SYS  SYS  NV2  SYS", "NV4  X    SYS+ NV1  SYS  NV1  SYS  NV1",
               "NV1  SYS+ X    NV4  NV2  SYS  SYS  SYS", "SYS+ NV1  NV4  X    SYS  NV1  SYS  NV1",
               "SYS  SYS  NV2  SYS  X    NV4  NV1  SYS", "SYS  NV1  SYS  NV1  NV4  X    SYS  NV1",
               "NV2  SYS  SYS  SYS  NV1  SYS  X    NV4", "SYS  NV1  SYS  NV1  SYS  NV1  NV4  X"},
      .numa = {0, 0, 1, 1, 2, 2, 3, 3}};
}
inline Matrix Ac922() {
  return {
      .name = "AC922", .gpus = 4, .rows = BlockRows(4, 2, "NV3", "SYS"), .numa = HalfAndHalf(4)};
}
// Two GPUs at a PCIe switch, two switches at a socket.
inline Matrix PcieOnly() {
  Matrix matrix{.name = "PCIe only",
                .gpus = 8,
                .rows = BlockRows(8, 4, "NODE", "SYS"),
                .numa = HalfAndHalf(8)};
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    std::vector<std::string> cells = absl::StrSplit(matrix.rows[gpu], ' ');
    cells[gpu ^ 1] = "PIX";
    matrix.rows[gpu] = absl::StrJoin(cells, " ");
  }
  return WithNics(std::move(matrix), 4, 1, "PHB");
}

inline std::vector<Matrix> KnownMachines() {
  return {Dgx1(), Dgx2(), HgxH100(), P4d(), P5(), Mi250x(), Ac922(), PcieOnly()};
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_LAYOUTS_H_
