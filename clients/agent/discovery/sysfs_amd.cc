#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "clients/agent/discovery/sysfs.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

constexpr uint64_t kLinkXgmi = 11;  // type of a link between compute nodes
constexpr uint64_t kMaxBytes = uint64_t{1} << 60;
constexpr uint64_t kMaxMinor = uint64_t{1} << 20;  // the kernel's own limit

// "name value" lines; all values are numbers.
using Properties = std::map<std::string, uint64_t>;
Properties ReadProperties(const std::string& path) {
  Properties properties;
  for (absl::string_view line : absl::StrSplit(ReadSysFile(path), '\n')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint64_t value = 0;
    if (absl::SimpleAtoi(parts.second, &value)) properties[parts.first] = value;
  }
  return properties;
}
uint64_t Get(const Properties& properties, const char* name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

// One GPU as the kernel's compute driver lists it.
struct ComputeNode {
  PciAddress pci;
  int32_t partition = -1;
  uint64_t unique_id = 0;
  uint64_t memory_bytes = 0;
  int32_t render_minor = -1;
  int32_t index = 0;
  std::vector<std::pair<std::string, uint64_t>> xgmi{};  // node, MB/s
};
using ComputeNodes = std::map<std::string, ComputeNode>;  // by the kernel's number

PciAddress LocationOf(const Properties& properties) {
  const uint64_t location = Get(properties, "location_id");
  return {.domain = static_cast<uint32_t>(Get(properties, "domain")),
          .bus = static_cast<uint8_t>(location >> 8),
          .device = static_cast<uint8_t>((location >> 3) & 0x1f),
          .function = static_cast<uint8_t>(location & 7)};
}

ComputeNode ReadNode(const std::string& folder, const Properties& properties) {
  ComputeNode node{.pci = LocationOf(properties), .unique_id = Get(properties, "unique_id")};
  const uint64_t minor = Get(properties, "drm_render_minor");
  if (minor > 0 && minor < kMaxMinor) node.render_minor = static_cast<int32_t>(minor);
  for (const std::string& bank : ListSysFolder(folder + "/mem_banks")) {
    const Properties memory =
        ReadProperties(absl::StrCat(folder, "/mem_banks/", bank, "/properties"));
    node.memory_bytes += std::min(Get(memory, "size_in_bytes"), kMaxBytes);
  }
  for (const std::string& link : ListSysFolder(folder + "/io_links")) {
    const Properties facts =
        ReadProperties(absl::StrCat(folder, "/io_links/", link, "/properties"));
    if (Get(facts, "type") == kLinkXgmi)
      node.xgmi.emplace_back(absl::StrCat(Get(facts, "node_to")), Get(facts, "max_bandwidth"));
  }
  return node;
}

// Partitions of one function share its location; in some modes their function number is the
// partition, although the PCI bus has only function 0.
ComputeNodes ReadComputeNodes(const std::string& root) {
  const std::string folder = absl::StrCat(root, "/sys/class/kfd/kfd/topology/nodes");
  ComputeNodes nodes;
  std::map<PciAddress, int32_t> counts;
  const std::vector<std::string> names = ListSysFolder(folder);
  for (const std::string& name : names) {
    const std::string of = absl::StrCat(folder, "/", name);
    const Properties properties = ReadProperties(of + "/properties");
    if (Get(properties, "simd_count") == 0) continue;  // a CPU
    ComputeNode node = ReadNode(of, properties);
    node.pci.function = 0;
    node.partition = counts[node.pci]++;
    node.index = static_cast<int32_t>(nodes.size());
    nodes[name] = std::move(node);
  }
  for (auto& [name, node] : nodes) {
    if (counts[node.pci] == 1) node.partition = -1;
  }
  return nodes;
}

void ReadFunction(const std::string& root, int32_t device, Gpu* gpu) {
  const std::string folder = absl::StrCat(root, "/sys/bus/pci/devices/", ToString(gpu->pci));
  if (std::string name = ReadSysFile(folder + "/product_name"); !name.empty()) gpu->model = name;
  if (gpu->model.empty()) gpu->model = AmdModel(device);
  const std::string id = absl::AsciiStrToLower(ReadSysFile(folder + "/unique_id"));
  if (gpu->uuid.empty() && id.find_first_not_of('0') != std::string::npos)
    gpu->uuid = absl::StrCat("GPU-", id);
  uint64_t bytes = 0;
  if (gpu->memory_bytes == 0 &&
      absl::SimpleAtoi(ReadSysFile(folder + "/mem_info_vram_total"), &bytes)) {
    gpu->memory_bytes = static_cast<int64_t>(std::min(bytes, kMaxBytes));
  }
}

void AddLinks(const ComputeNode& node, const ComputeNodes& nodes, Gpu* gpu) {
  gpu->links.clear();
  for (const auto& [to, mb_per_s] : node.xgmi) {
    const auto peer = nodes.find(to);
    FabricLink link{.fabric = FabricKind::kXgmi, .peer = PeerKind::kCpu, .count = 1};
    link.mb_per_s = static_cast<int64_t>(std::min<uint64_t>(mb_per_s, 1u << 30));
    if (peer != nodes.end()) {
      link.peer = PeerKind::kGpu;
      link.address = peer->second.pci;
      link.partition = peer->second.partition;
    }
    gpu->links.push_back(link);
  }
}

// The GPUs of one function: one per compute node.
std::vector<Gpu> Divide(const Gpu& whole, const ComputeNodes& nodes) {
  std::vector<Gpu> parts;
  for (const auto& [name, node] : nodes) {
    if (node.pci != whole.pci) continue;
    Gpu part = whole;
    part.partition = node.partition;
    part.render_minor = node.render_minor;
    part.compute_index = node.index;
    if (node.partition >= 0) {
      part.uuid.clear();  // partitions share the function's UUID
      part.memory_bytes = static_cast<int64_t>(std::min(node.memory_bytes, kMaxBytes));
    } else if (part.uuid.empty() && node.unique_id != 0) {
      part.uuid = absl::StrFormat("GPU-%016x", node.unique_id);
    }
    if (part.memory_bytes == 0)
      part.memory_bytes = static_cast<int64_t>(std::min(node.memory_bytes, kMaxBytes));
    AddLinks(node, nodes, &part);
    parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end(),
            [](const Gpu& a, const Gpu& b) { return a.partition < b.partition; });
  return parts;
}

}  // namespace

void JoinAmd(const std::string& root, Machine* machine) {
  const ComputeNodes nodes = ReadComputeNodes(root);
  std::vector<Gpu> gpus;
  for (Gpu& gpu : machine->gpus) {
    if (gpu.vendor != "amd") {
      gpus.push_back(std::move(gpu));
      continue;
    }
    const int32_t device =
        gpu.pci_node < 0 ? 0 : machine->pci[static_cast<size_t>(gpu.pci_node)].device;
    ReadFunction(root, device, &gpu);
    std::vector<Gpu> parts = gpu.partition >= 0 ? std::vector<Gpu>() : Divide(gpu, nodes);
    if (parts.empty()) {
      if (!nodes.empty() && gpu.partition < 0)
        gpu.problem = "the kernel has no compute node for it";
      parts.push_back(std::move(gpu));
    }
    std::move(parts.begin(), parts.end(), std::back_inserter(gpus));
  }
  machine->gpus = std::move(gpus);
}

}  // namespace berth::discovery
