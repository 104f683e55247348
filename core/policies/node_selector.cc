#include "core/model/taints.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// The node has all requested labels, and its name is not excluded.
class NodeSelectorFilter final : public NodeFilter {
 public:
  absl::string_view name() const override { return "node_selector"; }
  bool OfNodeAlone() const override { return true; }
  NodeTest Prepare(const ShapeRequest& request) const override {
    const TaskShape& shape = request.entry.shape;
    if (shape.match_labels.empty() && shape.exclude_nodes.empty()) return nullptr;
    return [&shape](const Offer& offer) { return Selects(shape, offer.node.spec); };
  }
};

}  // namespace

std::unique_ptr<NodeFilter> MakeNodeSelectorFilter() {
  return std::make_unique<NodeSelectorFilter>();
}

}  // namespace berth
