#include "core/topology/tree.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

// Sorted by name, then id.
template <class Id, class Name>
void SortByName(std::vector<Id>* ids, Name&& name) {
  std::sort(ids->begin(), ids->end(), [&](Id a, Id b) {
    const int order = absl::string_view(name(a)).compare(name(b));
    return order != 0 ? order < 0 : a < b;
  });
}

}  // namespace

struct TopologyTree::Members {
  absl::flat_hash_map<HyperNodeId, std::vector<NodeId>> nodes;  // 0: in no HyperNode of the kind
};

TopologyTree::TopologyTree(const ClusterState& state, absl::string_view kind) : kind_(kind) {
  Members members;
  positions_.assign(state.next_node_id().value, kNowhere);
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    const HyperNode* domain = state.DomainOf(node, kind);
    members.nodes[domain == nullptr ? HyperNodeId{} : domain->id].push_back(id);
  });
  std::vector<HyperNodeId> tops;
  state.hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode& hyper_node) {
    if (hyper_node.spec.kind != kind) return;
    tiers_.push_back(hyper_node.spec.tier);
    if (!hyper_node.spec.tier_name.empty()) {
      tier_names_.emplace(hyper_node.spec.tier_name, hyper_node.spec.tier);
    }
    any_degraded_ |= hyper_node.spec.health == DomainHealth::kDegraded;
    if (hyper_node.parent == HyperNodeId{}) tops.push_back(id);
  });
  std::sort(tiers_.begin(), tiers_.end());
  tiers_.erase(std::unique(tiers_.begin(), tiers_.end()), tiers_.end());
  domains_.push_back({});
  AddNodes(state, std::move(members.nodes[HyperNodeId{}]), kRootDomain);
  SortByName(&tops, [&](HyperNodeId id) { return state.hyper_nodes().At(id).spec.name; });
  for (HyperNodeId top : tops) Add(state, members, top, kRootDomain);
  domains_[kRootDomain].end = static_cast<DomainIndex>(domains_.size());
  domains_[kRootDomain].end_node = static_cast<uint32_t>(nodes_.size());
}

// Recursion is as deep as there are tiers.
void TopologyTree::Add(const ClusterState& state, const Members& members, HyperNodeId id,
                       DomainIndex parent) {
  const HyperNode& hyper_node = state.hyper_nodes().At(id);
  const auto own = static_cast<DomainIndex>(domains_.size());
  index_.emplace(id, own);
  domains_.push_back(
      {.id = id,
       .tier = hyper_node.spec.tier,
       .parent = parent,
       .degraded = At(parent).degraded || hyper_node.spec.health == DomainHealth::kDegraded});
  const auto joined = members.nodes.find(id);
  AddNodes(state, joined == members.nodes.end() ? std::vector<NodeId>() : joined->second, own);
  for (HyperNodeId child : hyper_node.children) Add(state, members, child, own);
  domains_[own].end = static_cast<DomainIndex>(domains_.size());
  domains_[own].end_node = static_cast<uint32_t>(nodes_.size());
}

void TopologyTree::AddNodes(const ClusterState& state, std::vector<NodeId> nodes,
                            DomainIndex domain) {
  SortByName(&nodes,
             [&](NodeId id) -> const std::string& { return state.nodes().At(id).spec.name; });
  domains_[domain].first_node = static_cast<uint32_t>(nodes_.size());
  for (NodeId node : nodes) {
    positions_[node.value] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(node);
    lowest_.push_back(domain);
  }
  domains_[domain].own_end = static_cast<uint32_t>(nodes_.size());
}

DomainIndex TopologyTree::Common(DomainIndex a, DomainIndex b) const {
  while (!Holds(a, b)) a = At(a).parent;
  return a;
}

std::optional<DomainIndex> TopologyTree::DomainAt(NodeId node, int32_t tier) const {
  if (!tiers_.empty() && tier > tiers_.back()) return kRootDomain;
  DomainIndex at = LowestOf(node);
  if (at == kRootDomain || At(at).tier > tier) return std::nullopt;
  while (At(at).parent != kRootDomain && At(At(at).parent).tier <= tier) at = At(at).parent;
  return at;
}

std::optional<DomainIndex> TopologyTree::Find(HyperNodeId id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int32_t> TopologyTree::TierOf(absl::string_view tier_name) const {
  const auto found = tier_names_.find(tier_name);
  return found == tier_names_.end() ? std::nullopt : std::optional(found->second);
}

std::string TopologyTree::TierName(int32_t tier) const {
  if (tier == kRootTier) return "the cluster";
  for (const auto& [name, of] : tier_names_) {
    if (of == tier) return name;
  }
  return absl::StrCat("tier ", tier);
}

const TopologyTree* TopologyTrees::Of(const ClusterState& state, absl::string_view kind) {
  const bool same = topology_version_ == state.topology_version() &&
                    next_node_ == state.next_node_id() && nodes_ == state.nodes().size();
  if (!same || version_ == 0) {
    trees_.clear();
    ++version_;
    topology_version_ = state.topology_version();
    next_node_ = state.next_node_id();
    nodes_ = state.nodes().size();
  }
  auto found = trees_.find(kind);
  if (found == trees_.end()) {
    auto made = std::make_unique<TopologyTree>(state, kind);
    found = trees_.emplace(std::string(kind), std::move(made)).first;
  }
  return found->second->tiers().empty() ? nullptr : found->second.get();
}

}  // namespace berth
