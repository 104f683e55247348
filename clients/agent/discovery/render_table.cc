#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/agent/discovery/names.h"
#include "clients/agent/discovery/render.h"

namespace berth::discovery {
namespace {

std::string Clean(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

std::string Size(int64_t bytes) {
  const double gibibytes = static_cast<double>(bytes) / (1 << 30);
  return bytes <= 0 ? "" : absl::StrFormat("%.1f GiB", gibibytes);
}

std::string Place(const char* what, int32_t number) {
  return number < 0 ? absl::StrCat(what, " unknown") : absl::StrCat(what, " ", number);
}

// The non-empty words, separated by two spaces.
std::string Line(std::vector<std::string> words) {
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return Clean(absl::StrJoin(words, "  "));
}

std::string GpuLine(const Machine& machine, size_t index) {
  const Gpu& gpu = machine.gpus[index];
  return Line({DeviceName(machine, index), ToString(gpu.pci),
               gpu.partition < 0 ? "" : absl::StrCat("partition ", gpu.partition),
               gpu.model.empty() ? gpu.vendor : gpu.model, Size(gpu.memory_bytes), gpu.uuid,
               Place("numa", gpu.numa_node), absl::StrJoin(gpu.os_devices, ","),
               gpu.problem.empty() ? "" : absl::StrCat("PROBLEM: ", gpu.problem)});
}

std::string NicLine(const Nic& nic) {
  return Line({nic.name, ToString(nic.pci), nic.model, absl::StrJoin(nic.net_devices, ","),
               nic.megabits_per_s > 0 ? absl::StrCat(nic.megabits_per_s / 1000, " Gbit/s") : "",
               nic.port_state, Place("numa", nic.numa_node)});
}

std::string NodeLine(const PciNode& node) {
  return Line({Name(node.kind), ToString(node.address), node.name,
               node.link_mb_per_s > 0
                   ? absl::StrFormat("%.1f GB/s", static_cast<double>(node.link_mb_per_s) / 1000)
                   : ""});
}

std::string Processors(const Machine& machine) {
  std::string out;
  for (const Package& package : machine.packages)
    absl::StrAppend(&out, Line({Place("package", package.os_index), package.model}), "\n");
  for (const NumaNode& node : machine.numa_nodes) {
    const std::string cpus = node.cpus.empty() ? "no cpus" : absl::StrCat("cpus ", node.cpus);
    absl::StrAppend(&out,
                    Line({Place("numa", node.os_index), Place("package", node.package), cpus,
                          Size(node.memory_bytes), node.gpu_memory ? "GPU memory" : ""}),
                    "\n");
  }
  return out;
}

// Writes the node's devices and children, each indented below its ancestors.
class Tree {
 public:
  explicit Tree(const Machine& machine) : machine_(machine) {}

  std::string Draw() {
    Below(-1, "");
    return std::move(out_);
  }

 private:
  struct Entry {
    std::string text;
    int32_t node = -2;  // whose children hang below; -2 = none
  };

  // A device in the tree is drawn as its GPU or NIC.
  std::vector<Entry> Entries(int32_t parent) const {
    std::vector<Entry> entries;
    for (size_t i = 0; i < machine_.pci.size(); ++i) {
      const PciNode& node = machine_.pci[i];
      if (node.parent != parent) continue;
      std::vector<Entry> devices =
          node.kind == PciKind::kDevice ? Devices(static_cast<int32_t>(i)) : std::vector<Entry>();
      if (devices.empty()) devices.push_back({NodeLine(node), static_cast<int32_t>(i)});
      entries.insert(entries.end(), devices.begin(), devices.end());
    }
    if (parent == -1) {
      const std::vector<Entry> loose = Devices(-1);
      entries.insert(entries.end(), loose.begin(), loose.end());
    }
    return entries;
  }

  std::vector<Entry> Devices(int32_t node) const {
    std::vector<Entry> devices;
    for (size_t i = 0; i < machine_.gpus.size(); ++i) {
      if (machine_.gpus[i].pci_node == node) devices.push_back({GpuLine(machine_, i)});
    }
    for (const Nic& nic : machine_.nics) {
      if (nic.pci_node == node) devices.push_back({NicLine(nic)});
    }
    return devices;
  }

  void Below(int32_t parent, const std::string& bars) {
    const std::vector<Entry> entries = Entries(parent);
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool last = i + 1 == entries.size();
      const bool root = parent == -1;
      absl::StrAppend(&out_, bars, root ? "" : last ? "└─ " : "├─ ", entries[i].text, "\n");
      if (entries[i].node >= 0)
        Below(entries[i].node, absl::StrCat(bars, root ? "" : last ? "   " : "│  "));
    }
  }

  const Machine& machine_;
  std::string out_;
};

std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return out;
}

std::string Matrix(const Machine& machine) {
  std::vector<std::vector<std::string>> rows(1, {""});
  for (size_t i = 0; i < machine.gpus.size(); ++i) rows[0].push_back(DeviceName(machine, i));
  for (const Nic& nic : machine.nics) rows[0].push_back(Clean(nic.name));
  rows[0].push_back("NUMA");
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    std::vector<std::string> row = {DeviceName(machine, i)};
    for (const Distance& distance : machine.gpu_gpu[i]) row.push_back(Label(distance));
    for (const Distance& distance : machine.gpu_nic[i]) row.push_back(Label(distance));
    const int32_t numa = machine.gpus[i].numa_node;
    row.push_back(numa < 0 ? "?" : absl::StrCat(numa));
    rows.push_back(row);
  }
  return Aligned(rows);
}

std::string Partitions(const Machine& machine) {
  std::string out;
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    for (const MigInstance& mig : machine.gpus[i].mig)
      absl::StrAppend(
          &out,
          Line({DeviceName(machine, i), "MIG", mig.profile, Size(mig.memory_bytes), mig.uuid}),
          "\n");
  }
  return out;
}

}  // namespace

std::string DeviceName(const Machine& machine, size_t gpu) {
  return absl::StrCat(machine.gpus[gpu].kind, gpu);
}

std::string RenderTable(const Machine& machine) {
  std::string out =
      absl::StrCat(Line({Clean(machine.source), Size(machine.host_memory_bytes)}), "\n",
                   Processors(machine), "\n", Tree(machine).Draw(), Partitions(machine));
  if (machine.gpus.empty()) {
    absl::StrAppend(&out, "no GPUs\n");
  } else {
    absl::StrAppend(&out, "\n", Matrix(machine));
  }
  for (const std::string& warning : machine.warnings)
    absl::StrAppend(&out, "warning: ", Clean(warning), "\n");
  return out;
}

}  // namespace berth::discovery
