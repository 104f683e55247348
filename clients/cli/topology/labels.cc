#include "clients/cli/topology/labels.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/names.h"

namespace berth {
namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";

// "topology-rack" of "cloud.provider.com/topology-rack"; the whole key if two keys end alike.
std::vector<std::string> TierNames(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(DnsLabelFrom(key.substr(key.find('/') + 1)));
  const std::set<std::string> different(names.begin(), names.end());
  for (size_t i = 0; different.size() < names.size() && i < keys.size(); ++i)
    names[i] = DnsLabelFrom(keys[i]);
  return names;
}

absl::Status CheckKeys(const std::vector<std::string>& keys) {
  if (keys.empty()) return absl::InvalidArgumentError("there is no label to group nodes by");
  if (keys.size() > kMaxLabelKeys)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxLabelKeys, " labels"));
  for (const std::string& key : keys) {
    if (key.empty() || std::count(keys.begin(), keys.end(), key) > 1)
      return absl::InvalidArgumentError(absl::StrCat("label \"", key, "\" is empty or repeated"));
  }
  return absl::OkStatus();
}

// The node's values of all keys; empty if it lacks one.
std::vector<std::string> PathOf(const LabelledNode& node, const std::vector<std::string>& keys) {
  std::vector<std::string> path;
  for (const std::string& key : keys) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second.empty()) return {};
    path.push_back(found->second);
  }
  return path;
}

}  // namespace

absl::StatusOr<Imported> GroupByLabels(const std::vector<LabelledNode>& nodes,
                                       std::vector<std::string> keys) {
  if (!keys.empty() && keys.back() == kHostname) keys.pop_back();
  const absl::Status status = CheckKeys(keys);
  if (!status.ok()) return status;
  const std::vector<std::string> tier_names = TierNames(keys);
  std::map<std::string, NodeGroup> groups;  // by id, the path of values
  std::vector<std::string> left_out;
  for (const LabelledNode& node : nodes) {
    const std::vector<std::string> path = PathOf(node, keys);
    if (path.empty()) left_out.push_back(node.name);
    std::string above;
    for (size_t i = 0; i < path.size(); ++i) {
      const std::string id = above.empty() ? path[i] : absl::StrCat(above, "/", path[i]);
      NodeGroup& group = groups[id];
      group.id = id;
      group.base_name =
          absl::StrJoin(path.begin(), path.begin() + static_cast<ptrdiff_t>(i) + 1, "-");
      group.tier = static_cast<int>(keys.size() - i);
      group.tier_name = tier_names[i];
      if (i + 1 == path.size()) group.nodes.push_back(node.name);
      if (!above.empty()) groups[above].children.push_back(id);
      above = id;
    }
  }
  Imported imported;
  for (auto& [id, group] : groups) {
    std::sort(group.children.begin(), group.children.end());
    imported.groups.push_back(std::move(group));
  }
  if (!left_out.empty()) {
    imported.warnings.push_back(
        absl::StrCat(left_out.size(), " of ", nodes.size(), " nodes lack one of the labels ",
                     absl::StrJoin(keys, ", "), " and are left out: ", SomeOf(left_out)));
  }
  return imported;
}

absl::StatusOr<Imported> ReadLabels(const ImportInput& input) {
  return GroupByLabels(input.nodes, input.labels);
}

}  // namespace berth
