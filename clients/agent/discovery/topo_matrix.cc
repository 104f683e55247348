#include "clients/agent/discovery/topo_matrix.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/agent/discovery/names.h"

namespace berth::discovery {
namespace {

constexpr absl::string_view kCpuColumn = "CPU Affinity";
constexpr absl::string_view kNumaColumn = "NUMA Affinity";

// The tool underlines its header on terminals: ESC [ ... m.
std::string WithoutEscapes(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      out.push_back(text[at]);
      continue;
    }
    while (at < text.size() && text[at] != 'm') ++at;
  }
  return out;
}

std::vector<std::string> Cells(absl::string_view line) {
  std::vector<std::string> cells;
  for (absl::string_view cell : absl::StrSplit(line, '\t'))
    cells.emplace_back(absl::StripAsciiWhitespace(cell));
  return cells;
}

bool ReadCell(absl::string_view text, Distance* cell) {
  if (text == "X") return cell->pci = LinkClass::kSelf, true;
  if (absl::ConsumePrefix(&text, "NV")) {
    cell->fabric = FabricKind::kNvlink;
    return absl::SimpleAtoi(text, &cell->links) && cell->links > 0;
  }
  for (const LinkClass link :
       {LinkClass::kPix, LinkClass::kPxb, LinkClass::kPhb, LinkClass::kNode, LinkClass::kSys}) {
    if (text == Name(link)) return cell->pci = link, true;
  }
  return false;
}

class Parser {
 public:
  absl::StatusOr<TopoMatrix> Parse(absl::string_view text) {
    const std::string clean = WithoutEscapes(text);
    for (absl::string_view line : absl::StrSplit(clean, '\n')) {
      ++line_;
      line = absl::StripSuffix(line, "\r");
      if (absl::Status status = Line(line); !status.ok()) return status;
    }
    if (matrix_.devices.empty()) return Error("no matrix header");
    if (matrix_.cells.size() < matrix_.devices.size()) return Error("rows are missing");
    if (absl::Status status = CheckSymmetry(); !status.ok()) return status;
    return std::move(matrix_);
  }

 private:
  absl::Status Error(absl::string_view reason) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", reason));
  }

  absl::Status Line(absl::string_view line) {
    if (matrix_.devices.empty())
      return absl::StartsWith(line, "\t") ? Head(line) : absl::OkStatus();
    if (matrix_.cells.size() < matrix_.devices.size()) return Row(line);
    Legend(line);
    return absl::OkStatus();
  }

  absl::Status Head(absl::string_view line) {
    head_ = Cells(line);
    for (size_t i = 1; i < head_.size() && head_[i] != kCpuColumn && !head_[i].empty(); ++i) {
      matrix_.devices.push_back({.name = head_[i], .is_gpu = absl::StartsWith(head_[i], "GPU")});
    }
    if (matrix_.devices.empty()) return Error("a header without devices");
    return matrix_.devices.size() > kMaxTopoDevices ? Error("too many devices") : absl::OkStatus();
  }

  absl::Status Row(absl::string_view line) {
    const std::vector<std::string> cells = Cells(line);
    const size_t index = matrix_.cells.size();
    TopoDevice& device = matrix_.devices[index];
    if (cells[0] != device.name)
      return Error(absl::StrCat("the row of ", device.name, " is missing"));
    std::vector<Distance> row(matrix_.devices.size());
    for (size_t i = 0; i < row.size(); ++i) {
      if (i + 1 >= cells.size() || !ReadCell(cells[i + 1], &row[i]))
        return Error(
            absl::StrCat("no distance from ", device.name, " to ", matrix_.devices[i].name));
    }
    for (size_t i = row.size() + 1; i < cells.size() && i < head_.size(); ++i) {
      if (head_[i] == kCpuColumn) device.cpus = cells[i];
      int32_t numa = -1;
      if (head_[i] == kNumaColumn && absl::SimpleAtoi(cells[i], &numa)) device.numa_node = numa;
    }
    matrix_.cells.push_back(std::move(row));
    return absl::OkStatus();
  }

  // "  NIC0: mlx5_0"
  void Legend(absl::string_view line) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(line), absl::MaxSplits(": ", 1));
    if (parts.second.empty()) return;
    for (TopoDevice& device : matrix_.devices) {
      if (!device.is_gpu && device.name == parts.first) device.name = std::string(parts.second);
    }
  }

  absl::Status CheckSymmetry() const {
    for (size_t i = 0; i < matrix_.cells.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (Label(matrix_.cells[i][j]) != Label(matrix_.cells[j][i]))
          return Error(absl::StrCat(matrix_.devices[i].name, " and ", matrix_.devices[j].name,
                                    " disagree on the distance between them"));
      }
      if (matrix_.cells[i][i].pci != LinkClass::kSelf) return Error("the diagonal is not X");
    }
    return absl::OkStatus();
  }

  int line_ = 0;
  std::vector<std::string> head_;
  TopoMatrix matrix_;
};

// The machine's indexes of the devices in the matrix.
struct Places {
  std::vector<size_t> gpus;  // the n-th NVIDIA GPU
  std::map<std::string, size_t> nics;
};
Places FindPlaces(const Machine& machine) {
  Places places;
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].vendor == "nvidia") places.gpus.push_back(i);
  }
  for (size_t i = 0; i < machine.nics.size(); ++i) places.nics[machine.nics[i].name] = i;
  return places;
}

}  // namespace

absl::StatusOr<TopoMatrix> ParseTopoMatrix(absl::string_view text) { return Parser().Parse(text); }

std::vector<std::string> CompareWithTopo(const Machine& machine, const TopoMatrix& matrix) {
  const Places places = FindPlaces(machine);
  std::vector<std::string> differences;
  size_t gpu = 0;
  for (size_t i = 0; i < matrix.devices.size(); ++i) {
    if (!matrix.devices[i].is_gpu) {
      if (!places.nics.contains(matrix.devices[i].name))
        differences.push_back(absl::StrCat(matrix.devices[i].name, " was not found here"));
      continue;
    }
    if (gpu >= places.gpus.size()) {
      differences.push_back(absl::StrCat(matrix.devices[i].name, " was not found here"));
      continue;
    }
    const size_t row = places.gpus[gpu++];
    for (size_t j = i + 1, other = gpu; j < matrix.devices.size(); ++j) {
      const TopoDevice& to = matrix.devices[j];
      const Distance* ours = nullptr;
      if (to.is_gpu) {
        if (other < places.gpus.size()) ours = &machine.gpu_gpu[row][places.gpus[other]];
        ++other;
      } else if (const auto nic = places.nics.find(to.name); nic != places.nics.end()) {
        ours = &machine.gpu_nic[row][nic->second];
      }
      if (ours == nullptr || Label(*ours) == Label(matrix.cells[i][j])) continue;
      differences.push_back(absl::StrCat(matrix.devices[i].name, " to ", to.name, ": ",
                                         Label(*ours), " here, ", Label(matrix.cells[i][j]),
                                         " in the table"));
    }
  }
  if (gpu < places.gpus.size())
    differences.push_back(
        absl::StrCat(places.gpus.size() - gpu, " more GPUs here than in the table"));
  return differences;
}

}  // namespace berth::discovery
