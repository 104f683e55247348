#include "offline/replay/network_tier.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace berth::replay {
namespace {

template <class IdType>
void Unique(std::vector<IdType>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

}  // namespace

// Replaces domains of the lowest tier by their parents until one is left.
int32_t CommonTier(const ClusterState& state, std::vector<NodeId> nodes) {
  Unique(&nodes);
  if (nodes.empty()) return kNoTier;
  if (nodes.size() == 1) return kOneNode;
  std::vector<HyperNodeId> domains;
  for (NodeId id : nodes) {
    const HyperNode* domain = state.DomainOf(state.nodes().At(id), kNetworkKind);
    if (domain == nullptr) return kAboveAll;
    domains.push_back(domain->id);
  }
  const auto tier = [&](HyperNodeId id) { return state.hyper_nodes().At(id).spec.tier; };
  for (Unique(&domains); domains.size() > 1; Unique(&domains)) {
    int32_t lowest = tier(domains.front());
    for (HyperNodeId id : domains) lowest = std::min(lowest, tier(id));
    for (HyperNodeId& id : domains) {
      if (tier(id) != lowest) continue;
      id = state.hyper_nodes().At(id).parent;
      if (id == HyperNodeId{}) return kAboveAll;
    }
  }
  return tier(domains.front());
}

std::string TierName(const ClusterState& state, int32_t tier) {
  if (tier == kOneNode) return "node";
  if (tier == kAboveAll) return "above";
  std::string name;
  state.hyper_nodes().ForEach([&](HyperNodeId, const HyperNode& hyper_node) {
    const HyperNodeSpec& spec = hyper_node.spec;
    if (name.empty() && spec.kind == kNetworkKind && spec.tier == tier) name = spec.tier_name;
  });
  return name.empty() ? absl::StrCat("tier ", tier) : name;
}

}  // namespace berth::replay
