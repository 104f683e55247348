#include "clients/cli/device_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

// "gpu0": the kind and the number within that kind.
std::vector<std::string> ShortNames(const v1::Node& node) {
  std::map<std::string, int> numbers;
  std::vector<std::string> names;
  for (const v1::Device& device : node.inventory().devices()) {
    names.push_back(absl::StrCat(device.kind(), numbers[device.kind()]++));
  }
  return names;
}

std::vector<Word> States(const v1::Node& node) {
  const auto& in_use = node.status().devices_in_use();
  const std::set<std::string> used(in_use.begin(), in_use.end());
  const auto& shares = node.status().shares_in_use();
  const auto& drains = node.status().drain().devices();
  std::vector<Word> states;
  for (const v1::Device& device : node.inventory().devices()) {
    const auto share = shares.find(device.uuid());
    const bool drained = std::find(drains.begin(), drains.end(), device.uuid()) != drains.end();
    if (drained && !device.unhealthy()) {
      const bool busy = used.count(device.uuid()) > 0;
      states.push_back({busy ? "in use, drained" : "drained", Color::kYellow});
      continue;
    }
    if (!device.unhealthy() && share != shares.end()) {
      states.push_back({absl::StrCat(HumanCount(share->second), " in use"), Color::kBlue});
      continue;
    }
    states.push_back(device.unhealthy()              ? Word{"unhealthy", Color::kRed}
                     : used.count(device.uuid()) > 0 ? Word{"in use", Color::kBlue}
                                                     : Word{"free", Color::kGreen});
  }
  return states;
}

// Adds a row for each NUMA node with devices; returns the rows by NUMA node.
std::map<int32_t, size_t> AddNumaNodes(const v1::NodeInventory& inventory, Table* table) {
  std::map<int32_t, size_t> rows;
  for (const v1::NumaNode& numa : inventory.topology().numa_nodes()) {
    const bool any =
        std::any_of(inventory.devices().begin(), inventory.devices().end(),
                    [&](const v1::Device& device) { return device.numa_node() == numa.id(); });
    if (!any) continue;
    const std::string memory = numa.memory_bytes() == 0 ? "-" : HumanBytes(numa.memory_bytes());
    rows[numa.id()] = table->AddRow({{absl::StrCat("NUMA node ", numa.id())},
                                     {absl::StrCat("CPUs ", numa.cpus())},
                                     {"-"},
                                     {"-"},
                                     {memory},
                                     {absl::StrCat(numa.id())},
                                     {"-"}});
  }
  return rows;
}

// The link between a and b, a != b; nullptr if unknown.
const v1::DeviceLink* LinkOf(const v1::NodeInventory& inventory, int a, int b) {
  const v1::DeviceTopology& topology = inventory.topology();
  const auto low = static_cast<size_t>(std::min(a, b));
  const auto high = static_cast<size_t>(std::max(a, b));
  const auto devices = static_cast<size_t>(inventory.devices_size());
  const size_t pair = low * (2 * devices - low - 1) / 2 + (high - low - 1);
  if (pair >= topology.between().size()) return nullptr;
  const auto code = static_cast<uint8_t>(topology.between()[pair]);
  return code == 0 || code > topology.links_size() ? nullptr : &topology.links(code - 1);
}

std::string Cell(const v1::NodeInventory& inventory, int a, int b) {
  if (a == b) return "X";
  const v1::DeviceLink* link = LinkOf(inventory, a, b);
  if (link == nullptr) return "?";
  if (link->link() != v1::LINK_CLASS_NVLINK) {
    return v1::LinkClass_Name(link->link()).substr(std::string("LINK_CLASS_").size());
  }
  return link->count() > 0 ? absl::StrCat("NV", link->count()) : "NV";
}

// The devices with a row: all but NICs that have a known link to any other device.
std::vector<int> Rows(const v1::NodeInventory& inventory) {
  std::vector<int> rows;
  for (int a = 0; a < inventory.devices_size(); ++a) {
    bool known = false;
    for (int b = 0; b < inventory.devices_size(); ++b) {
      known = known || (a != b && LinkOf(inventory, a, b) != nullptr);
    }
    if (known && inventory.devices(a).kind() != "nic") rows.push_back(a);
  }
  return rows;
}

}  // namespace

Table DeviceTable(const v1::Node& node) {
  Table table({{"DEVICE", Column::kTree},
               {"UUID"},
               {"KIND"},
               {"MODEL"},
               {"MEMORY", Column::kRight},
               {"NUMA", Column::kRight},
               {"STATE"}});
  const std::vector<std::string> names = ShortNames(node);
  const std::vector<Word> states = States(node);
  const std::map<int32_t, size_t> numa_rows = AddNumaNodes(node.inventory(), &table);
  for (int i = 0; i < node.inventory().devices_size(); ++i) {
    const v1::Device& device = node.inventory().devices(i);
    const auto at = static_cast<size_t>(i);
    const auto below = numa_rows.find(device.numa_node());
    table.AddRow({{names[at]},
                  {device.uuid()},
                  {device.kind()},
                  {device.model()},
                  {device.memory_bytes() == 0 ? "-" : HumanBytes(device.memory_bytes())},
                  {device.numa_node() < 0 ? "-" : absl::StrCat(device.numa_node())},
                  states[at]},
                 below == numa_rows.end() ? absl::nullopt : absl::make_optional(below->second));
  }
  return table;
}

std::string LinkMatrix(const v1::Node& node, const TableStyle& style) {
  const v1::NodeInventory& inventory = node.inventory();
  const std::vector<int> rows = Rows(inventory);
  if (rows.empty()) return "";
  const std::vector<std::string> names = ShortNames(node);
  const std::vector<Word> states = States(node);
  std::vector<int> columns;
  std::vector<Column> header = {{""}};
  for (int b = 0; b < inventory.devices_size(); ++b) {
    const bool any = std::any_of(rows.begin(), rows.end(), [&](int a) {
      return a == b || LinkOf(inventory, a, b) != nullptr;
    });
    if (!any) continue;
    columns.push_back(b);
    header.push_back({names[static_cast<size_t>(b)]});
  }
  header.push_back({"STATE"});
  Table table(header);
  for (int a : rows) {
    std::vector<Word> cells = {{names[static_cast<size_t>(a)]}};
    for (int b : columns) cells.push_back({Cell(inventory, a, b)});
    cells.push_back(states[static_cast<size_t>(a)]);
    table.AddRow(std::move(cells));
  }
  return table.Render(style);
}

}  // namespace berth
