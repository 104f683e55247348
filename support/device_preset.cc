#include "support/device_preset.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr size_t kMaxDevices = 128;

std::optional<v1::DeviceLink> ParseCell(absl::string_view cell) {
  static const auto* const kClasses = new std::map<absl::string_view, v1::LinkClass>{
      {"?", v1::LINK_CLASS_UNSPECIFIED}, {"XGMI", v1::LINK_CLASS_NVLINK},
      {"PIX", v1::LINK_CLASS_PIX},       {"PXB", v1::LINK_CLASS_PXB},
      {"PHB", v1::LINK_CLASS_PHB},       {"NODE", v1::LINK_CLASS_NODE},
      {"SYS", v1::LINK_CLASS_SYS}};
  v1::DeviceLink link;
  if (const auto known = kClasses->find(cell); known != kClasses->end()) {
    link.set_link(known->second);
    return link;
  }
  int32_t count = 0;
  if (!absl::ConsumePrefix(&cell, "NV") || !absl::SimpleAtoi(cell, &count)) return std::nullopt;
  if (count < 1 || count > 1024) return std::nullopt;
  link.set_link(v1::LINK_CLASS_NVLINK);
  link.set_count(count);
  return link;
}

using Matrix = std::vector<std::vector<std::string>>;

absl::StatusOr<Matrix> Square(absl::Span<const std::string> rows) {
  if (rows.size() > kMaxDevices) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxDevices, " rows"));
  }
  Matrix matrix;
  for (const std::string& row : rows) {
    matrix.push_back(absl::StrSplit(row, absl::ByAnyChar(" \t"), absl::SkipEmpty()));
    if (matrix.back().size() == rows.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("row ", matrix.size(), " has ",
                                                   matrix.back().size(), " cells; there are ",
                                                   rows.size(), " rows"));
  }
  return matrix;
}

// The rows of `gpus` GPUs: `far` between GPUs of different blocks, `near` within one.
std::vector<std::string> Blocks(int gpus, int block, absl::string_view near,
                                absl::string_view far) {
  std::vector<std::string> rows;
  for (int a = 0; a < gpus; ++a) {
    std::vector<absl::string_view> cells;
    for (int b = 0; b < gpus; ++b) {
      cells.push_back(a == b ? "X" : (a / block == b / block ? near : far));
    }
    rows.push_back(absl::StrJoin(cells, " "));
  }
  return rows;
}

// Adds `own` NICs per GPU: PIX to their GPU, NODE to others in the same half, SYS to the rest.
void AddNics(int own, DevicePreset* preset) {
  preset->nics = own * preset->gpus;
  const auto cell = [&](int gpu, int nic) -> absl::string_view {
    if (nic / own == gpu) return "PIX";
    return preset->numa[static_cast<size_t>(gpu)] == preset->numa[static_cast<size_t>(nic / own)]
               ? "NODE"
               : "SYS";
  };
  for (int gpu = 0; gpu < preset->gpus; ++gpu) {
    for (int nic = 0; nic < preset->nics; ++nic) {
      absl::StrAppend(&preset->rows[static_cast<size_t>(gpu)], " ", cell(gpu, nic));
    }
  }
  for (int nic = 0; nic < preset->nics; ++nic) {
    std::vector<absl::string_view> cells;
    for (int gpu = 0; gpu < preset->gpus; ++gpu) cells.push_back(cell(gpu, nic));
    for (int other = 0; other < preset->nics; ++other) cells.push_back(other == nic ? "X" : "?");
    preset->rows.push_back(absl::StrJoin(cells, " "));
    preset->numa.push_back(preset->numa[static_cast<size_t>(nic / own)]);
  }
}

std::vector<int32_t> Halves(int devices) {
  std::vector<int32_t> numa;
  for (int i = 0; i < devices; ++i) numa.push_back(i < devices / 2 ? 0 : 1);
  return numa;
}

// All GPUs are connected by NVLink switches; half of them are at each socket.
DevicePreset Switched(std::string name, int gpus, absl::string_view link, int nics_each) {
  DevicePreset preset{.name = std::move(name),
                      .gpus = gpus,
                      .nics = 0,
                      .rows = Blocks(gpus, gpus, link, link),
                      .numa = Halves(gpus)};
  if (nics_each > 0) AddNics(nics_each, &preset);
  return preset;
}

// V100 in two quads (a hybrid cube mesh), with a NIC for every two GPUs.
DevicePreset Dgx1() {
  return {.name = "dgx-1",
          .gpus = 8,
          .nics = 4,
          .rows = {"X NV1 NV1 NV2 NV2 SYS SYS SYS PIX PHB SYS SYS",
                   "NV1 X NV2 NV1 SYS NV2 SYS SYS PIX PHB SYS SYS",
                   "NV1 NV2 X NV2 SYS SYS NV1 SYS PHB PIX SYS SYS",
                   "NV2 NV1 NV2 X SYS SYS SYS NV1 PHB PIX SYS SYS",
                   "NV2 SYS SYS SYS X NV1 NV1 NV2 SYS SYS PIX PHB",
                   "SYS NV2 SYS SYS NV1 X NV2 NV1 SYS SYS PIX PHB",
                   "SYS SYS NV1 SYS NV1 NV2 X NV2 SYS SYS PHB PIX",
                   "SYS SYS SYS NV1 NV2 NV1 NV2 X SYS SYS PHB PIX",
                   "PIX PIX PHB PHB SYS SYS SYS SYS X PHB SYS SYS",
                   "PHB PHB PIX PIX SYS SYS SYS SYS PHB X SYS SYS",
                   "SYS SYS SYS SYS PIX PIX PHB PHB SYS SYS X PHB",
                   "SYS SYS SYS SYS PHB PHB PIX PIX SYS SYS PHB X"},
          .numa = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1}};
}

// POWER9: two GPUs at each socket, connected by NVLink.
DevicePreset Ac922() {
  return {
      .name = "ac922", .gpus = 4, .nics = 0, .rows = Blocks(4, 2, "NV3", "SYS"), .numa = Halves(4)};
}

// Eight dies in four packages. The links between packages form a ring with chords.
DevicePreset Mi250x() {
  return {.name = "mi250x",
          .gpus = 8,
          .nics = 0,
          .rows = {"X NV4 NV1 SYS SYS SYS NV2 SYS", "NV4 X SYS NV1 SYS NV1 SYS NV1",
                   "NV1 SYS X NV4 NV2 SYS SYS SYS", "SYS NV1 NV4 X SYS NV1 SYS NV1",
                   "SYS SYS NV2 SYS X NV4 NV1 SYS", "SYS NV1 SYS NV1 NV4 X SYS NV1",
                   "NV2 SYS SYS SYS NV1 SYS X NV4", "SYS NV1 SYS NV1 SYS NV1 NV4 X"},
          .numa = {0, 0, 1, 1, 2, 2, 3, 3}};
}

// PCIe only: two GPUs per switch, two switches per socket.
DevicePreset Pcie8() {
  DevicePreset preset{.name = "pcie-8",
                      .gpus = 8,
                      .nics = 0,
                      .rows = Blocks(8, 4, "NODE", "SYS"),
                      .numa = Halves(8)};
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    std::vector<std::string> cells = absl::StrSplit(preset.rows[gpu], ' ');
    cells[gpu ^ 1] = "PIX";
    preset.rows[gpu] = absl::StrJoin(cells, " ");
  }
  return preset;
}

std::vector<DevicePreset> AllPresets() {
  return {Ac922(),
          Dgx1(),
          Switched("dgx-2", 16, "NV6", 0),
          Switched("dgx-a100", 8, "NV12", 1),
          Switched("hgx-h100", 8, "NV18", 1),
          Mi250x(),
          Switched("p5", 8, "NV18", 4),
          Pcie8()};
}

}  // namespace

absl::StatusOr<v1::DeviceTopology> ParseDeviceMatrix(absl::Span<const std::string> rows) {
  absl::StatusOr<Matrix> matrix = Square(rows);
  if (!matrix.ok()) return matrix.status();
  v1::DeviceTopology topology;
  std::map<std::string, char> codes;
  for (size_t a = 0; a < rows.size(); ++a) {
    if ((*matrix)[a][a] != "X") {
      return absl::InvalidArgumentError(absl::StrCat("row ", a + 1, ": cell ", a + 1, " is not X"));
    }
    for (size_t b = a + 1; b < rows.size(); ++b) {
      const std::string& there = (*matrix)[a][b];
      const std::string& back = (*matrix)[b][a];
      const std::string& cell = there == "?" ? back : there;
      const auto link = ParseCell(cell);
      if (!link.has_value() || (back != "?" && back != cell)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "row ", a + 1, ", cell ", b + 1, ": ", there,
            link.has_value() ? absl::StrCat(", but the reverse is ", back) : " is not a link"));
      }
      char code = 0;
      if (link->link() != v1::LINK_CLASS_UNSPECIFIED) {
        const auto [known, fresh] =
            codes.try_emplace(cell, static_cast<char>(topology.links_size() + 1));
        if (fresh) *topology.add_links() = *link;
        code = known->second;
      }
      topology.mutable_between()->push_back(code);
    }
  }
  return topology;
}

absl::StatusOr<DevicePreset> FindDevicePreset(const std::string& name) {
  std::vector<std::string> names;
  for (DevicePreset& preset : AllPresets()) {
    if (preset.name == name) return std::move(preset);
    names.push_back(preset.name);
  }
  return absl::NotFoundError(
      absl::StrCat("unknown device topology ", name, "; known: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<v1::DeviceTopology> PresetTopology(const DevicePreset& preset, int gpus, int nics,
                                                  int64_t cpus, int64_t memory_bytes) {
  if (gpus != preset.gpus || (nics != 0 && nics != preset.nics)) {
    return absl::InvalidArgumentError(absl::StrCat(preset.name, " has ", preset.gpus, " GPUs and ",
                                                   preset.nics, " NICs, not ", gpus, " and ",
                                                   nics));
  }
  std::vector<std::string> rows;
  for (int device = 0; device < gpus + nics; ++device) {
    std::vector<std::string> cells =
        absl::StrSplit(preset.rows[static_cast<size_t>(device)], ' ', absl::SkipEmpty());
    cells.resize(static_cast<size_t>(gpus + nics));
    rows.push_back(absl::StrJoin(cells, " "));
  }
  absl::StatusOr<v1::DeviceTopology> topology = ParseDeviceMatrix(rows);
  if (!topology.ok()) return topology;
  const int32_t numa_nodes = *std::max_element(preset.numa.begin(), preset.numa.end()) + 1;
  for (int32_t id = 0; id < numa_nodes && cpus >= numa_nodes; ++id) {
    const int64_t part = cpus / numa_nodes;
    v1::NumaNode* numa = topology->add_numa_nodes();
    numa->set_id(id);
    numa->set_package(id);
    numa->set_cpus(absl::StrCat(id * part, "-", (id + 1) * part - 1));
    numa->set_memory_bytes(memory_bytes / numa_nodes);
  }
  return topology;
}

}  // namespace berth
