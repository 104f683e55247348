#include <algorithm>
#include <functional>

#include "core/model/apply_internal.h"
#include "core/model/hyper_node_check.h"
#include "core/model/state_editor.h"

namespace berth::apply_internal {
namespace {

absl::Status CheckNodes(const ClusterState& state, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return Invalid("no nodes to join or leave a HyperNode");
  const auto unordered =
      std::adjacent_find(nodes.begin(), nodes.end(), std::greater_equal<NodeId>());
  if (unordered != nodes.end()) return Invalid("nodes must be ascending, each once");
  for (NodeId id : nodes) {
    if (state.nodes().Find(id) == nullptr) return NotFound("no node ", id.value);
  }
  return absl::OkStatus();
}

bool IsIn(const Node& node, HyperNodeId domain) {
  return std::find(node.domains.begin(), node.domains.end(), domain) != node.domains.end();
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const HyperNodeChanged& event, Time) {
  const HyperNode* known = state.hyper_nodes().Find(event.id);
  if (known == nullptr && event.id != state.next_hyper_node_id()) {
    return Refused("the next HyperNode is ", state.next_hyper_node_id().value, ", not ",
                   event.id.value);
  }
  if (known == nullptr && state.FindHyperNode(event.spec.name) != nullptr) {
    return Exists("HyperNode ", event.spec.name, " exists");
  }
  if (known != nullptr && known->spec.name != event.spec.name) {
    return Invalid(NameOf(*known), " cannot become ", event.spec.name);
  }
  if (auto status = CheckHyperNode(state, event.spec); !status.ok()) return status;
  StateEditor(state).SetHyperNode(event.id, event.spec);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const HyperNodeDeleted& event, Time) {
  if (state.hyper_nodes().Find(event.id) == nullptr) {
    return NotFound("no HyperNode ", event.id.value);
  }
  StateEditor(state).EraseHyperNode(event.id);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodesJoined& event, Time) {
  const HyperNode* domain = state.hyper_nodes().Find(event.domain);
  if (domain == nullptr) return NotFound("no HyperNode ", event.domain.value);
  if (auto status = CheckNodes(state, event.nodes); !status.ok()) return status;
  for (NodeId id : event.nodes) {
    const Node& node = state.nodes().At(id);
    if (IsIn(node, event.domain)) return Refused(NameOf(node), " is already in ", NameOf(*domain));
  }
  StateEditor(state).JoinNodes(event.domain, event.nodes);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodesLeft& event, Time) {
  const HyperNode* domain = state.hyper_nodes().Find(event.domain);
  if (domain == nullptr) return NotFound("no HyperNode ", event.domain.value);
  if (auto status = CheckNodes(state, event.nodes); !status.ok()) return status;
  for (NodeId id : event.nodes) {
    const Node& node = state.nodes().At(id);
    if (!IsIn(node, event.domain)) return Refused(NameOf(node), " is not in ", NameOf(*domain));
  }
  StateEditor(state).LeaveNodes(event.domain, event.nodes);
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
