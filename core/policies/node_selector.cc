#include <algorithm>

#include "core/policies/registry.h"

namespace berth {
namespace {

bool Selected(const TaskShape& shape, const NodeSpec& node) {
  for (const auto& [key, value] : shape.match_labels) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second != value) return false;
  }
  return !std::binary_search(shape.exclude_nodes.begin(), shape.exclude_nodes.end(), node.name);
}

// The node has all requested labels, and its name is not excluded.
class NodeSelectorFilter final : public NodeFilter {
 public:
  absl::string_view name() const override { return "node_selector"; }
  bool OfNodeAlone() const override { return true; }
  NodeTest Prepare(const ShapeRequest& request) const override {
    const TaskShape& shape = request.entry.shape;
    if (shape.match_labels.empty() && shape.exclude_nodes.empty()) return nullptr;
    return [&shape](const Offer& offer) { return Selected(shape, offer.node.spec); };
  }
};

}  // namespace

std::unique_ptr<NodeFilter> MakeNodeSelectorFilter() {
  return std::make_unique<NodeSelectorFilter>();
}

}  // namespace berth
