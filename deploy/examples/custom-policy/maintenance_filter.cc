#include <algorithm>

#include "policies.h"

namespace custom {
namespace {

bool Tolerates(const berth::TaskShape& shape) {
  return std::any_of(
      shape.tolerations.begin(), shape.tolerations.end(),
      [](const berth::Toleration& t) { return t.key.empty() || t.key == "maintenance"; });
}

bool UnderMaintenance(const berth::Node& node) {
  const auto label = node.spec.labels.find("maintenance");
  return label != node.spec.labels.end() && label->second == "soon";
}

class MaintenanceFilter final : public berth::NodeFilter {
 public:
  absl::string_view name() const override { return "maintenance"; }
  // Conditions on the task are evaluated here, once per shape. The returned test runs per node.
  berth::NodeTest Prepare(const berth::ShapeRequest& request) const override {
    if (Tolerates(request.entry.shape)) return nullptr;
    return [](const berth::Offer& offer) { return !UnderMaintenance(offer.node); };
  }
};

}  // namespace

std::unique_ptr<berth::NodeFilter> MakeMaintenanceFilter() {
  return std::make_unique<MaintenanceFilter>();
}

}  // namespace custom
