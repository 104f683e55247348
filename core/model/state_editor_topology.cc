// StateEditor: HyperNodes and their nodes.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/model/state_editor.h"

namespace berth {
namespace {

std::vector<NodeId> Without(const std::vector<NodeId>& all, absl::Span<const NodeId> gone) {
  std::vector<NodeId> rest;
  rest.reserve(all.size());
  std::set_difference(all.begin(), all.end(), gone.begin(), gone.end(), std::back_inserter(rest));
  BERTH_CHECK(rest.size() + gone.size() == all.size());
  return rest;
}

void Merge(std::vector<NodeId>& all, absl::Span<const NodeId> more) {
  const auto middle = static_cast<ptrdiff_t>(all.size());
  all.insert(all.end(), more.begin(), more.end());
  std::inplace_merge(all.begin(), all.begin() + middle, all.end());
}

}  // namespace

void StateEditor::TopologyChanged() {
  ++state_.topology_version_;
  ForgetNever();
  WakeAll();
}

void StateEditor::SetParent(HyperNode& child, HyperNodeId parent) {
  const auto by_name = [&](HyperNodeId a, HyperNodeId b) {
    return state_.hyper_nodes_.At(a).spec.name < state_.hyper_nodes_.At(b).spec.name;
  };
  if (HyperNode* old = state_.hyper_nodes_.Find(child.parent); old != nullptr) {
    const auto at = std::lower_bound(old->children.begin(), old->children.end(), child.id, by_name);
    BERTH_CHECK(at != old->children.end() && *at == child.id);
    old->children.erase(at);
  }
  child.parent = parent;
  if (HyperNode* above = state_.hyper_nodes_.Find(parent); above != nullptr) {
    const auto at =
        std::lower_bound(above->children.begin(), above->children.end(), child.id, by_name);
    above->children.insert(at, child.id);
  }
}

// The HyperNodes that it names: those that exist become its children, or roots again.
void StateEditor::Claim(const HyperNode& domain, bool claim) {
  ForEachChildName(domain.spec, [&](const std::string& name) {
    if (claim) {
      BERTH_CHECK(state_.claimants_.emplace(name, domain.id).second);
    } else {
      state_.claimants_.erase(name);
    }
    const auto child = state_.hyper_node_names_.find(name);
    if (child == state_.hyper_node_names_.end()) return;
    SetParent(state_.hyper_nodes_.At(child->second), claim ? domain.id : HyperNodeId{});
  });
}

void StateEditor::NameTier(const HyperNodeSpec& spec, bool name) {
  if (spec.tier_name.empty()) return;
  const auto key = std::make_pair(spec.kind, spec.tier_name);
  ClusterState::TierUse& use = state_.tier_names_[key];
  use.tier = spec.tier;
  use.hyper_nodes += name ? 1 : -1;
  if (use.hyper_nodes == 0) state_.tier_names_.erase(key);
}

void StateEditor::SetHyperNode(HyperNodeId id, HyperNodeSpec spec) {
  HyperNode* domain = state_.hyper_nodes_.Find(id);
  if (domain == nullptr) {
    domain = &state_.hyper_nodes_.Emplace(id);
    domain->id = id;
    ++state_.members_version_;
    if (state_.next_hyper_node_id_ <= id) state_.next_hyper_node_id_ = HyperNodeId{id.value + 1};
    domain->spec = std::move(spec);
    BERTH_CHECK(state_.hyper_node_names_.emplace(domain->spec.name, id).second);
    SetParent(*domain, state_.ClaimantOf(domain->spec.name));
  } else {
    BERTH_CHECK(domain->spec.name == spec.name && domain->spec.kind == spec.kind);
    if (domain->spec.members != spec.members) ++state_.members_version_;
    Claim(*domain, false);
    NameTier(domain->spec, false);
    state_.hyper_node_names_.erase(domain->spec.name);
    domain->spec = std::move(spec);
    state_.hyper_node_names_.emplace(domain->spec.name, id);
  }
  NameTier(domain->spec, true);
  Claim(*domain, true);
  if (facts()) state_.dirty_.hyper_nodes.push_back(id);
  TopologyChanged();
}

void StateEditor::EraseHyperNode(HyperNodeId id) {
  HyperNode& domain = state_.hyper_nodes_.At(id);
  if (!domain.nodes.empty()) LeaveNodes(id, std::vector<NodeId>(domain.nodes));
  Claim(domain, false);
  SetParent(domain, HyperNodeId{});
  NameTier(domain.spec, false);
  state_.hyper_node_names_.erase(domain.spec.name);
  state_.hyper_nodes_.Erase(id);
  ++state_.members_version_;
  if (facts()) state_.dirty_.hyper_nodes.push_back(id);
  TopologyChanged();
}

void StateEditor::JoinNodes(HyperNodeId id, absl::Span<const NodeId> nodes) {
  HyperNode& domain = state_.hyper_nodes_.At(id);
  std::map<HyperNodeId, std::vector<NodeId>> leaving;
  for (NodeId node : nodes) {
    const HyperNode* before = state_.DomainOf(state_.nodes_.At(node), domain.spec.kind);
    if (before != nullptr) leaving[before->id].push_back(node);
  }
  for (const auto& [before, gone] : leaving) LeaveNodes(before, gone);
  for (NodeId node : nodes) {
    auto& domains = state_.nodes_.At(node).domains;
    domains.insert(std::lower_bound(domains.begin(), domains.end(), id), id);
    if (facts()) state_.dirty_.nodes.push_back(node);
  }
  Merge(domain.nodes, nodes);
  TopologyChanged();
}

void StateEditor::LeaveNodes(HyperNodeId id, absl::Span<const NodeId> nodes) {
  HyperNode& domain = state_.hyper_nodes_.At(id);
  domain.nodes = Without(domain.nodes, nodes);
  for (NodeId node : nodes) {
    auto& domains = state_.nodes_.At(node).domains;
    const auto at = std::find(domains.begin(), domains.end(), id);
    BERTH_CHECK(at != domains.end());
    domains.erase(at);
    if (facts()) state_.dirty_.nodes.push_back(node);
  }
  TopologyChanged();
}

}  // namespace berth
