#include "core/model/taints.h"

#include <algorithm>

#include "core/policies/registry.h"

namespace berth {
namespace {

bool ToleratesAll(const std::vector<Toleration>& tolerations, const std::vector<Taint>& taints) {
  return std::all_of(taints.begin(), taints.end(),
                     [&](const Taint& taint) { return Tolerated(taint, tolerations); });
}

// Every taint of the node must be tolerated.
class TaintsFilter final : public NodeFilter {
 public:
  absl::string_view name() const override { return "taints"; }
  bool OfNodeAlone() const override { return true; }
  NodeTest Prepare(const ShapeRequest& request) const override {
    return [&tolerations = request.entry.shape.tolerations](const Offer& offer) {
      return ToleratesAll(tolerations, offer.node.spec.taints);
    };
  }
};

}  // namespace

std::unique_ptr<NodeFilter> MakeTaintsFilter() { return std::make_unique<TaintsFilter>(); }

}  // namespace berth
