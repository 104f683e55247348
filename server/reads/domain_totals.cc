#include "server/reads/domain_totals.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/planning/selectors.h"
#include "server/validation/text.h"

namespace berth {
namespace {

// The HyperNode and those below it.
std::vector<HyperNodeId> SubtreeOf(const ClusterState& state, HyperNodeId id) {
  std::vector<HyperNodeId> subtree;
  if (state.hyper_nodes().Find(id) != nullptr) subtree.push_back(id);
  for (size_t i = 0; i < subtree.size(); ++i) {
    const HyperNode& domain = state.hyper_nodes().At(subtree[i]);
    subtree.insert(subtree.end(), domain.children.begin(), domain.children.end());
  }
  return subtree;
}

std::vector<NodeId> NodesIn(const ClusterState& state, HyperNodeId id) {
  std::vector<NodeId> nodes;
  for (HyperNodeId below : SubtreeOf(state, id)) {
    const std::vector<NodeId>& own = state.hyper_nodes().At(below).nodes;
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  return nodes;
}

class Sums {
 public:
  void Add(const ClusterState& state, const Node& node) {
    ++nodes_;
    if (node.status.state != NodeState::kReady) return;
    ++ready_;
    DeviceSet free = node.healthy;
    free -= TakenDevices(node).InUse();
    const bool takes = TakesTasks(node.status);
    for (const DeviceKindSet& kind : node.kinds) {
      auto& [capacity, unused] = devices_[state.interner().KindName(kind.kind)];
      capacity += kind.devices.Count();
      if (takes) unused += Intersection(free, kind.devices).Count();
    }
  }
  void Fill(v1::HyperNodeStatus* status) const {
    status->set_nodes(nodes_);
    status->set_ready_nodes(ready_);
    for (const auto& [kind, amounts] : devices_) {
      v1::DomainDevices* out = status->add_devices();
      out->set_kind(kind);
      out->set_capacity(amounts.first);
      out->set_free(amounts.second);
    }
  }

 private:
  int64_t nodes_ = 0, ready_ = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> devices_;  // capacity, free; by kind
};

class Conflicts {
 public:
  explicit Conflicts(v1::HyperNodeStatus* status) : status_(*status) {}
  void Add(std::string text) {
    if (++found_ <= kMaxConflicts) status_.add_conflicts(std::move(text));
  }
  void Finish() {
    if (found_ > kMaxConflicts) {
      status_.add_conflicts(absl::StrCat("and ", found_ - kMaxConflicts, " more"));
    }
  }

 private:
  v1::HyperNodeStatus& status_;
  int64_t found_ = 0;
};

// The HyperNode claims the node: notes where the node is instead.
void NoteElsewhere(const ClusterState& state, const HyperNode& claimant, const Node& node,
                   Conflicts& conflicts) {
  const HyperNode* in = state.DomainOf(node, claimant.spec.kind);
  for (const HyperNode* at = in; at != nullptr; at = state.hyper_nodes().Find(at->parent)) {
    if (at->id == claimant.id) return;
  }
  conflicts.Add(absl::StrCat("node ", Quoted(node.spec.name), " is in ",
                             in == nullptr ? "none" : in->spec.name));
}

// Members given by name: HyperNodes and nodes.
void NoteNamed(const ClusterState& state, const HyperNode& domain, Conflicts& conflicts) {
  for (const HyperNodeMember& member : domain.spec.members) {
    if (member.match != HyperNodeMember::Match::kExact) continue;
    if (member.type == HyperNodeMember::Type::kHyperNode) {
      if (state.FindHyperNode(member.text) != nullptr) continue;
      conflicts.Add(absl::StrCat("there is no HyperNode ", Quoted(member.text)));
    } else if (const Node* node = state.FindNode(member.text); node != nullptr) {
      NoteElsewhere(state, domain, *node, conflicts);
    } else {
      conflicts.Add(absl::StrCat("there is no node ", Quoted(member.text)));
    }
  }
}

// Selectors other than exact names.
SelectorIndex MatchersOf(const HyperNodeSpec& spec) {
  HyperNodeSpec others = spec;
  std::erase_if(others.members, [](const HyperNodeMember& member) {
    return member.match == HyperNodeMember::Match::kExact;
  });
  SelectorIndex index;
  index.Add(HyperNodeId{1}, others);
  return index;
}

}  // namespace

void FillTotals(const ClusterState& state, HyperNodeId id, v1::HyperNodeStatus* status) {
  Sums sums;
  for (NodeId node : NodesIn(state, id)) sums.Add(state, state.nodes().At(node));
  sums.Fill(status);
}

void FillTotals(ReadView& view, HyperNodeId id, v1::HyperNodeStatus* status) {
  const std::vector<NodeId> nodes =
      view.Step([&](const ClusterState& state) { return NodesIn(state, id); });
  Sums sums;
  for (size_t begin = 0; begin < nodes.size(); begin += kMaxRowsPerStep) {
    view.Step([&](const ClusterState& state) {
      const size_t end = std::min(nodes.size(), begin + kMaxRowsPerStep);
      for (size_t i = begin; i < end; ++i) {
        const Node* node = state.nodes().Find(nodes[i]);
        if (node != nullptr) sums.Add(state, *node);
      }
      return 0;
    });
  }
  sums.Fill(status);
}

void FillConflicts(ReadView& view, HyperNodeId id, v1::HyperNodeStatus* status) {
  Conflicts conflicts(status);
  std::optional<SelectorIndex> matchers;
  view.Step([&](const ClusterState& state) {
    const HyperNode* domain = state.hyper_nodes().Find(id);
    if (domain == nullptr) return 0;
    NoteNamed(state, *domain, conflicts);
    matchers = MatchersOf(domain->spec);
    return 0;
  });
  if (matchers.has_value()) matchers->Finish();
  std::vector<HyperNodeId> claimed;
  NodeId next{0};
  const auto look = [&](const ClusterState& state) {
    const HyperNode* domain = state.hyper_nodes().Find(id);
    for (size_t row = 0; row < kMaxRowsPerStep && domain != nullptr; ++row) {
      const std::optional<NodeId> node = state.nodes().NextFrom(next);
      if (!node.has_value()) return false;
      next = NodeId{node->value + 1};
      matchers->Match(state.nodes().At(*node).spec, &claimed);
      if (!claimed.empty()) NoteElsewhere(state, *domain, state.nodes().At(*node), conflicts);
    }
    return domain != nullptr;
  };
  while (matchers.has_value() && !matchers->exact_only() && view.Step(look)) {
  }
  conflicts.Finish();
}

}  // namespace berth
