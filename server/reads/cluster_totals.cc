#include "server/reads/cluster_totals.h"

#include <optional>

namespace berth {

NodeTotals SumNodes(ReadView& view, Time now) {
  NodeTotals totals;
  NodeId next{0};
  const auto look = [&](const ClusterState& state) {
    for (size_t row = 0; row < kMaxRowsPerStep; ++row) {
      const std::optional<NodeId> id = state.nodes().NextFrom(next);
      if (!id.has_value()) return false;
      next = NodeId{id->value + 1};
      const Node& node = state.nodes().At(*id);
      ++totals.by_state[static_cast<size_t>(node.status.state)];
      if (node.status.cordoned) ++totals.cordoned;
      if (FaultsAt(node.status.faults, now) >= kFailingNode) ++totals.failing;
      if (node.status.state == NodeState::kReady && !TakesTasks(node.status)) {
        ++(node.status.draining ? totals.ready_draining : totals.ready_cordoned);
      }
      if (!TakesTasks(node.status)) continue;
      totals.capacity += node.capacity;
      const bool empty = node.tasks.empty() && node.nominated.empty();
      (empty ? totals.free_on_empty : totals.free_on_shared) += FreeOf(node);
    }
    return true;
  };
  while (view.Step(look)) {
  }
  return totals;
}

}  // namespace berth
