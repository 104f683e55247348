#include <algorithm>

#include "core/policies/registry.h"

namespace berth {
namespace {

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  return (toleration.key.empty() || toleration.key == taint.key) &&
         (toleration.value.empty() || toleration.value == taint.value);
}

bool ToleratesAll(const std::vector<Toleration>& tolerations, const std::vector<Taint>& taints) {
  return std::all_of(taints.begin(), taints.end(), [&](const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(),
                       [&](const Toleration& one) { return Tolerates(one, taint); });
  });
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
