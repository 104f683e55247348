#include "server/planning/membership.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/natural_order.h"
#include "core/model/hyper_node_check.h"

namespace berth {
namespace {

// The tree with `changed` and `deleted` applied: a view.
class Tree {
 public:
  explicit Tree(const ClusterState& state) : state_(state) {}

  void Change(HyperNodeId id, const HyperNodeSpec* spec) {
    changed_[id] = spec;
    ForEachChildName(*spec, [&](const std::string& child) { claims_[child] = id; });
  }
  void Delete(HyperNodeId id) { changed_[id] = nullptr; }
  // Changed or deleted.
  bool Replaces(HyperNodeId id) const { return changed_.contains(id); }

  const HyperNodeSpec& Spec(HyperNodeId id) const {
    const auto found = changed_.find(id);
    return found == changed_.end() ? state_.hyper_nodes().At(id).spec : *found->second;
  }

  HyperNodeId Parent(HyperNodeId id) const {
    if (const auto found = claims_.find(Spec(id).name); found != claims_.end()) {
      return found->second;
    }
    const HyperNodeId claimant = state_.ClaimantOf(Spec(id).name);
    return Replaces(claimant) ? HyperNodeId{} : claimant;
  }

  bool IsAbove(HyperNodeId upper, HyperNodeId lower) const {
    for (HyperNodeId at = lower; at != HyperNodeId{}; at = Parent(at)) {
      if (at == upper) return true;
    }
    return false;
  }
  bool Related(HyperNodeId a, HyperNodeId b) const { return IsAbove(a, b) || IsAbove(b, a); }

  bool Lower(HyperNodeId a, HyperNodeId b) const {
    const HyperNodeSpec &left = Spec(a), &right = Spec(b);
    return left.tier != right.tier ? left.tier < right.tier : NaturalLess(left.name, right.name);
  }

 private:
  const ClusterState& state_;
  absl::flat_hash_map<HyperNodeId, const HyperNodeSpec*> changed_;  // null = deleted
  absl::flat_hash_map<std::string, HyperNodeId> claims_;            // of changed ones
};

// The claimants of one node, by kind, the lowest first.
using ByKind = std::map<std::string, std::vector<HyperNodeId>>;

ByKind SortClaims(const Tree& tree, const std::vector<HyperNodeId>& claimants) {
  ByKind kinds;
  for (HyperNodeId id : claimants) kinds[tree.Spec(id).kind].push_back(id);
  for (auto& [kind, ids] : kinds) {
    const auto lowest = std::min_element(
        ids.begin(), ids.end(), [&](HyperNodeId a, HyperNodeId b) { return tree.Lower(a, b); });
    std::iter_swap(ids.begin(), lowest);
  }
  return kinds;
}

// Nodes that move: collected in ascending order of nodes.
class Moves {
 public:
  explicit Moves(const ClusterState& state) : state_(state) {}

  // The node must be in the first of each kind and nowhere else. Leaving a deleted domain is
  // implicit.
  void Note(const Node& node, const ByKind& kinds) {
    for (const auto& [kind, ids] : kinds) {
      const HyperNodeId to = ids.front();
      const auto& now = node.domains;
      if (std::find(now.begin(), now.end(), to) == now.end()) joined_[to].push_back(node.id);
    }
    for (HyperNodeId from : node.domains) {
      const std::string& kind = state_.hyper_nodes().At(from).spec.kind;
      if (!kinds.contains(kind) && !deleted_.contains(from)) left_[from].push_back(node.id);
    }
  }
  void NoteDeleted(HyperNodeId id) { deleted_.insert(id); }

  void AppendTo(std::vector<EventBody>* events) && {
    for (auto& [domain, nodes] : left_) events->push_back(NodesLeft{domain, std::move(nodes)});
    for (auto& [domain, nodes] : joined_) events->push_back(NodesJoined{domain, std::move(nodes)});
  }

 private:
  const ClusterState& state_;
  absl::flat_hash_set<HyperNodeId> deleted_;
  std::map<HyperNodeId, std::vector<NodeId>> left_, joined_;
};

bool HasChildren(const HyperNodeSpec& spec) {
  bool any = false;
  ForEachChildName(spec, [&](const std::string&) { any = true; });
  return any;
}

std::vector<std::string> ChildNames(const HyperNodeSpec& spec) {
  std::vector<std::string> names;
  ForEachChildName(spec, [&](const std::string& name) { names.push_back(name); });
  std::sort(names.begin(), names.end());
  return names;
}

// One call of Plan.
class Planner {
 public:
  Planner(const ClusterState& state, const SelectorIndex& index,
          absl::Span<const HyperNodeSpec> changed, absl::Span<const std::string> deleted)
      : state_(state), index_(index), before_(state), after_(state), moves_(state) {
    for (const HyperNodeSpec& spec : changed) order_.push_back({HyperNodeId{}, &spec});
    std::sort(order_.begin(), order_.end(), [](const Changed& a, const Changed& b) {
      if (a.spec->tier != b.spec->tier) return a.spec->tier < b.spec->tier;
      return NaturalLess(a.spec->name, b.spec->name);
    });
    deleted_.assign(deleted.begin(), deleted.end());
    std::sort(deleted_.begin(), deleted_.end(), NaturalLess);
  }

  absl::StatusOr<std::vector<EventBody>> Run() {
    ChangeTree();
    if (members_differ_ || tree_differs_) {
      new_index_.Finish();
      old_index_.Finish();
      const absl::Status status = MoveNodes();
      if (!status.ok()) return status;
    }
    std::move(moves_).AppendTo(&events_);
    return std::move(events_);
  }

 private:
  struct Changed {
    HyperNodeId id;
    const HyperNodeSpec* spec;
  };

  // Deletes first. Then removes links and tier names that could conflict with another change. Then
  // applies the changes from the lowest tier up, so that members have their final state before
  // their parent is examined.
  void ChangeTree() {
    for (const std::string& name : deleted_) {
      const HyperNode& domain = *state_.FindHyperNode(name);
      events_.push_back(HyperNodeDeleted{domain.id});
      after_.Delete(domain.id);
      moves_.NoteDeleted(domain.id);
      old_index_.Add(domain.id, domain.spec);
      members_differ_ = true;
      tree_differs_ |= HasChildren(domain.spec);
    }
    uint32_t next = state_.next_hyper_node_id().value;
    for (Changed& change : order_) {
      const HyperNode* known = state_.FindHyperNode(change.spec->name);
      change.id = known != nullptr ? known->id : HyperNodeId{next++};
      after_.Change(change.id, change.spec);
      if (known != nullptr) Strip(*known, *change.spec);
      Compare(known, *change.spec, change.id);
    }
    for (const Changed& change : order_) {
      events_.push_back(HyperNodeChanged{change.id, *change.spec});
    }
  }

  void Strip(const HyperNode& known, const HyperNodeSpec& spec) {
    const std::vector<std::string> had = ChildNames(known.spec), has = ChildNames(spec);
    if (known.spec.tier == spec.tier && known.spec.tier_name == spec.tier_name &&
        std::includes(has.begin(), has.end(), had.begin(), had.end())) {
      return;
    }
    HyperNodeSpec bare = known.spec;
    bare.tier_name.clear();
    std::erase_if(bare.members, [](const HyperNodeMember& member) {
      return member.type == HyperNodeMember::Type::kHyperNode;
    });
    events_.push_back(HyperNodeChanged{known.id, std::move(bare)});
  }

  // Finds the nodes that this change may move: those that it claims or claimed; any node, if it is
  // or was above others.
  void Compare(const HyperNode* known, const HyperNodeSpec& spec, HyperNodeId id) {
    const bool same_tier = known != nullptr && known->spec.tier == spec.tier;
    if (same_tier && known->spec.members == spec.members) {
      new_index_.Add(id, spec);  // a parent that is examined may claim it again
      if (known != nullptr) old_index_.Add(id, known->spec);
      return;
    }
    members_differ_ = true;
    new_index_.Add(id, spec);
    if (known != nullptr) old_index_.Add(id, known->spec);
    if (!HasChildren(spec) && (known == nullptr || !HasChildren(known->spec))) return;
    tree_differs_ |= !same_tier || ChildNames(known->spec) != ChildNames(spec);
  }

  absl::Status MoveNodes() {
    if (tree_differs_ || !old_index_.exact_only() || !new_index_.exact_only()) {
      state_.nodes().ForEach([&](NodeId, const Node& node) { MoveNode(node); });
    } else {
      std::vector<NodeId> named;
      const auto add = [&](const std::string& name) {
        const Node* node = state_.FindNode(name);
        if (node != nullptr) named.push_back(node->id);
      };
      old_index_.ForEachName(add);
      new_index_.ForEachName(add);
      std::sort(named.begin(), named.end());
      named.erase(std::unique(named.begin(), named.end()), named.end());
      for (NodeId id : named) MoveNode(state_.nodes().At(id));
    }
    if (conflicts_ > 1) absl::StrAppend(&conflict_, " (and ", conflicts_ - 1, " more nodes)");
    return conflicts_ == 0 ? absl::OkStatus() : absl::FailedPreconditionError(conflict_);
  }

  void MoveNode(const Node& node) {
    new_index_.Match(node.spec, &added_);
    if (!tree_differs_ && added_.empty()) {
      old_index_.Match(node.spec, &claims_before_);
      if (claims_before_.empty()) return;
    }
    index_.Match(node.spec, &claims_before_);
    claims_ = added_;
    for (HyperNodeId id : claims_before_) {
      if (!after_.Replaces(id)) claims_.push_back(id);
    }
    const ByKind kinds = SortClaims(after_, claims_);
    for (const auto& [kind, ids] : kinds) CheckClaims(node, kind, ids);
    moves_.Note(node, kinds);
  }

  // All but the lowest are above it, or already conflicted with it.
  void CheckClaims(const Node& node, const std::string& kind, const std::vector<HyperNodeId>& ids) {
    for (HyperNodeId other : ids) {
      if (after_.IsAbove(other, ids.front())) continue;
      if (Claimed(ids.front()) && Claimed(other) && !before_.Related(other, ids.front())) continue;
      if (conflicts_++ > 0) return;
      const std::string* names[] = {&after_.Spec(ids.front()).name, &after_.Spec(other).name};
      conflict_ = absl::StrCat("node ", node.spec.name, " would be in both ", *names[0], " and ",
                               *names[1], " of kind ", kind, ": neither is above the other");
      return;
    }
  }
  bool Claimed(HyperNodeId id) const {
    return std::binary_search(claims_before_.begin(), claims_before_.end(), id);
  }

  const ClusterState& state_;
  const SelectorIndex& index_;
  const Tree before_;
  Tree after_;
  Moves moves_;
  std::vector<Changed> order_;  // by tier and name
  std::vector<std::string> deleted_;
  SelectorIndex old_index_, new_index_;  // of changed and deleted ones
  bool members_differ_ = false;
  bool tree_differs_ = false;
  std::vector<EventBody> events_;
  std::vector<HyperNodeId> added_, claims_before_, claims_;  // of the current node
  std::string conflict_;                                     // the first
  int64_t conflicts_ = 0;                                    // nodes
};

absl::Status CheckSelectors(absl::Span<const HyperNodeSpec> changed) {
  for (const HyperNodeSpec& spec : changed) {
    for (const HyperNodeMember& member : spec.members) {
      const absl::Status status = CheckSelector(member);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("HyperNode ", spec.name, ": member: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDeleted(const ClusterState& state, absl::Span<const HyperNodeSpec> changed,
                          absl::Span<const std::string> deleted) {
  absl::flat_hash_set<absl::string_view> names;
  for (const std::string& name : deleted) {
    if (state.FindHyperNode(name) == nullptr) {
      return absl::NotFoundError(absl::StrCat("there is no HyperNode ", name));
    }
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("HyperNode ", name, " is deleted twice"));
    }
  }
  for (const HyperNodeSpec& spec : changed) {
    if (!names.contains(spec.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("HyperNode ", spec.name, " is both deleted and given"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<EventBody>> Membership::Plan(const ClusterState& state,
                                                        absl::Span<const HyperNodeSpec> changed,
                                                        absl::Span<const std::string> deleted) {
  absl::Status status = CheckDeleted(state, changed, deleted);
  if (status.ok()) status = CheckSelectors(changed);
  if (status.ok()) status = CheckHyperNodes(state, changed, deleted);
  if (!status.ok()) return status;
  return Planner(state, IndexOf(state), changed, deleted).Run();
}

std::vector<EventBody> Membership::Follow(const ClusterState& state,
                                          absl::Span<const NodeId> nodes) {
  std::vector<NodeId> ordered(nodes.begin(), nodes.end());
  std::sort(ordered.begin(), ordered.end());
  ordered.erase(std::unique(ordered.begin(), ordered.end()), ordered.end());
  const SelectorIndex& index = IndexOf(state);
  const Tree tree(state);
  Moves moves(state);
  std::vector<HyperNodeId> claimants;
  for (NodeId id : ordered) {
    const Node* node = state.nodes().Find(id);
    if (node == nullptr) continue;
    index.Match(node->spec, &claimants);
    moves.Note(*node, SortClaims(tree, claimants));
  }
  std::vector<EventBody> events;
  std::move(moves).AppendTo(&events);
  return events;
}

const SelectorIndex& Membership::IndexOf(const ClusterState& state) {
  if (index_ != nullptr && version_ == state.members_version()) return *index_;
  index_ = std::make_unique<SelectorIndex>();
  state.hyper_nodes().ForEach(
      [&](HyperNodeId id, const HyperNode& domain) { index_->Add(id, domain.spec); });
  index_->Finish();
  version_ = state.members_version();
  return *index_;
}

}  // namespace berth
