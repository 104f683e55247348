#include "core/topology/domain_fits.h"

#include <algorithm>

namespace berth {
namespace {

int32_t FitsOn(const ClusterState& state, const FitKey& key, NodeId node, DomainFits::Count count) {
  const bool there = key.empty ? state.nodes().Find(node) != nullptr : state.free().Has(node);
  const int64_t most = key.one_per_node ? 1 : kMaxTasksPerJob;
  return there ? static_cast<int32_t>(count(node, most)) : 0;
}

}  // namespace

FitView DomainFits::Of(StateEditor& editor, const ClusterState& state, const TopologyTree& tree,
                       uint64_t trees_version, const FitKey& key, Count count) {
  Counts& counts = counts_[key];
  counts.last_asked = ++asked_;
  const bool followed = editor.ReadChangedNodes(&counts.position, &changed_);
  if (!followed || counts.trees_version != trees_version) {
    counts.trees_version = trees_version;
    CountAll(state, key, count, &counts);
  } else {
    for (NodeId node : changed_) Recount(state, key, node, count, &counts);
  }
  auto sums = counts.by_kind.find(tree.kind());
  if (sums == counts.by_kind.end()) {
    sums = counts.by_kind.emplace(tree.kind(), Sums{}).first;
    sums->second.tree = &tree;
    std::vector<int64_t>& of_domain = sums->second.of_domain;
    of_domain.assign(tree.domains().size(), 0);
    for (NodeId node : tree.nodes()) of_domain[tree.LowestOf(node)] += counts.of_node[node.value];
    for (size_t d = of_domain.size(); d-- > 1;) of_domain[tree.domains()[d].parent] += of_domain[d];
  }
  if (counts_.size() > kMaxKept) DropOldest();
  return {.tree = &tree, .of_node = counts.of_node, .of_domain = sums->second.of_domain};
}

void DomainFits::CountAll(const ClusterState& state, const FitKey& key, Count count,
                          Counts* counts) {
  counts->by_kind.clear();
  counts->of_node.assign(state.next_node_id().value, 0);
  state.nodes().ForEach(
      [&](NodeId id, const Node&) { counts->of_node[id.value] = FitsOn(state, key, id, count); });
}

void DomainFits::Recount(const ClusterState& state, const FitKey& key, NodeId node, Count count,
                         Counts* counts) {
  const int32_t now = FitsOn(state, key, node, count);
  const int64_t more = int64_t{now} - counts->of_node[node.value];
  if (more == 0) return;
  counts->of_node[node.value] = now;
  for (auto& [kind, sums] : counts->by_kind) {
    for (DomainIndex d = sums.tree->LowestOf(node);; d = sums.tree->At(d).parent) {
      sums.of_domain[d] += more;
      if (d == kRootDomain) break;
    }
  }
}

// Never drops the entry of the current question.
void DomainFits::DropOldest() {
  counts_.erase(std::min_element(counts_.begin(), counts_.end(), [](const auto& a, const auto& b) {
    return a.second.last_asked < b.second.last_asked;
  }));
}

}  // namespace berth
