#include "core/engine/search/device_choice.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// The node has the amounts, and devices that match the request's models, memory and uuid lists.
class ResourcesFilter final : public NodeFilter {
 public:
  absl::string_view name() const override { return "resources/devices"; }
  NodeTest Prepare(const ShapeRequest& request) const override {
    return [&needed = request.entry.least, devices = DeviceChoice(request)](const Offer& offer) {
      return needed.FitsIn(offer.free) &&
             (devices.AmountsSuffice(offer) || devices.SetsIn(offer, 1) == 1);
    };
  }
};

}  // namespace

std::unique_ptr<NodeFilter> MakeResourcesFilter() { return std::make_unique<ResourcesFilter>(); }

}  // namespace berth
