#include "clients/cli/share_view.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

constexpr char kBlank[] = " ";  // an empty cell; "" would be shown as "-"

double AmountIn(const v1::ResourceList& list, const std::string& resource) {
  if (resource == "cpu") return static_cast<double>(list.cpu_millis());
  if (resource == "memory") return static_cast<double>(list.memory_bytes());
  if (resource == "scratch") return static_cast<double>(list.scratch_bytes());
  const auto found = list.counts().find(resource);
  return found == list.counts().end() ? 0 : found->second;
}

std::vector<const v1::ResourceList*> ListsOf(const v1::QueueShares& shares) {
  return {&shares.allocated(), &shares.guarantee(), &shares.deserved(), &shares.fair_share(),
          &shares.demand(),    &shares.borrowed(),  &shares.lent()};
}

// Resources with an amount in any list: cpu and memory, then the others by name.
std::vector<std::string> ResourcesOf(const v1::QueueShares& shares) {
  std::set<std::string> others;
  for (const v1::ResourceList* list : ListsOf(shares)) {
    for (const auto& count : list->counts()) others.insert(count.first);
  }
  std::vector<std::string> all = {"cpu", "memory", "scratch"};
  all.insert(all.end(), others.begin(), others.end());
  std::vector<std::string> used;
  for (const std::string& resource : all) {
    for (const v1::ResourceList* list : ListsOf(shares)) {
      if (AmountIn(*list, resource) == 0) continue;
      used.push_back(resource);
      break;
    }
  }
  return used;
}

// "gpu 125%"
std::string DominantText(const v1::QueueShares& shares) {
  if (shares.dominant_resource().empty()) return "";
  if (shares.dominant_share() < 0) return shares.dominant_resource() + ", entitled to none";
  return absl::StrFormat("%s %.0f%%", shares.dominant_resource(), shares.dominant_share() * 100);
}

// One row of a queue, for `resource` or for none. Cells about the whole queue are only in the
// first.
std::vector<Word> Cells(const v1::QueueShares& shares, const std::string& resource, bool first) {
  std::vector<Word> cells = {{first ? shares.queue() : kBlank}, {resource}};
  for (const v1::ResourceList* list : ListsOf(shares)) {
    const double amount = AmountIn(*list, resource);
    cells.push_back({amount == 0 ? "" : HumanAmount(resource, amount)});
  }
  const double limit = AmountIn(shares.limit(), resource);
  cells.push_back({limit == 0 ? "" : HumanAmount(resource, limit)});
  cells.push_back({first ? DominantText(shares) : kBlank});
  cells.push_back({first ? absl::StrJoin(shares.why(), "; ") : kBlank});
  return cells;
}

}  // namespace

Table ShareTable(const v1::ListQueueSharesResponse& shares) {
  Table table({{"QUEUE", Column::kTree},
               {"RESOURCE"},
               {"ALLOCATED", Column::kRight},
               {"GUARANTEE", Column::kRight},
               {"DESERVED", Column::kRight},
               {"FAIR SHARE", Column::kRight},
               {"DEMAND", Column::kRight},
               {"BORROWED", Column::kRight},
               {"LENT", Column::kRight},
               {"LIMIT", Column::kRight | Column::kWide},
               {"DOMINANT", Column::kWide},
               {"WHY"}});
  std::map<std::string, size_t> last_row;  // of each queue: the parent of its children
  for (const v1::QueueShares& queue : shares.shares()) {
    const auto parent = last_row.find(queue.parent());
    const absl::optional<size_t> below =
        parent == last_row.end() ? absl::nullopt : absl::make_optional(parent->second);
    std::vector<std::string> resources = ResourcesOf(queue);
    if (resources.empty()) resources = {""};
    for (size_t i = 0; i < resources.size(); ++i) {
      last_row[queue.queue()] = table.AddRow(Cells(queue, resources[i], i == 0), below);
    }
  }
  return table;
}

}  // namespace berth
