#include "clients/cli/topology/nvlink.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {

std::vector<NodeGroup> GroupByClique(const std::vector<LabelledNode>& nodes, const std::string& key,
                                     const std::string& kind) {
  constexpr absl::string_view kNoFabric = "00000000-0000-0000-0000-000000000000";
  std::map<std::string, NodeGroup> groups;
  for (const LabelledNode& node : nodes) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second.empty()) continue;
    if (absl::StartsWith(found->second, kNoFabric)) continue;
    NodeGroup& group = groups[found->second];
    group.kind = kind;
    group.id = found->second;
    group.opaque = true;
    group.tier = 1;
    group.tier_name = "domain";
    group.nodes.push_back(node.name);
  }
  std::vector<NodeGroup> list;
  for (auto& [id, group] : groups) list.push_back(std::move(group));
  return list;
}

absl::StatusOr<Imported> ReadNvlink(const ImportInput& input) {
  if (input.labels.size() > 1)
    return absl::InvalidArgumentError("an NVLink domain has one label: give one --labels KEY");
  const std::string key = input.labels.empty() ? kCliqueLabel : input.labels.front();
  Imported imported;
  imported.groups = GroupByClique(input.nodes, key, "");
  size_t grouped = 0;
  for (const NodeGroup& group : imported.groups) grouped += group.nodes.size();
  if (grouped < input.nodes.size()) {
    imported.warnings.push_back(absl::StrCat(input.nodes.size() - grouped, " of ",
                                             input.nodes.size(), " nodes are in no domain: ", key,
                                             " is not set, or its UUID is all zeros"));
  }
  return imported;
}

}  // namespace berth
