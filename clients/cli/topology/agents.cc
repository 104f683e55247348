#include "clients/cli/topology/agents.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/cli/topology/fabric.h"
#include "clients/cli/topology/nvlink.h"

namespace berth {
namespace {

bool IsSwitchLabel(absl::string_view key) {
  return absl::ConsumePrefix(&key, kSwitchLabel) && (key.empty() || key[0] == '.');
}

}  // namespace

absl::StatusOr<Imported> ReadAgents(const ImportInput& input) {
  Fabric fabric;
  for (const LabelledNode& node : input.nodes) {
    for (const auto& [key, value] : node.labels) {
      if (IsSwitchLabel(key) && !value.empty()) fabric.AddHost(node.name, value, 0);
    }
  }
  Imported imported;
  fabric.AddGroups(/*prefix_ids=*/true, &imported);
  if (fabric.hosts() < input.nodes.size()) {
    imported.warnings.push_back(absl::StrCat(input.nodes.size() - fabric.hosts(), " of ",
                                             input.nodes.size(), " nodes report no ",
                                             kSwitchLabel));
  }
  for (NodeGroup& group : GroupByClique(input.nodes, kCliqueLabel, kNvlinkKind))
    imported.groups.push_back(std::move(group));
  return imported;
}

}  // namespace berth
