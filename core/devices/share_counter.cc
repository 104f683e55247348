#include "core/devices/share_counter.h"

#include <algorithm>

namespace berth {

void ShareCounter::Count(JobSpec* spec) {
  for (GroupSpec& group : spec->groups) {
    for (DeviceRequest& request : group.shape.devices) {
      if (request.by_memory) request.share = CountOf(request);
    }
  }
}

int32_t ShareCounter::CountOf(const DeviceRequest& request) {
  for (const auto& [asked, share] : known_) {
    if (asked == request) return share;
  }
  int32_t most = 0;
  state_.nodes().ForEach([&](NodeId, const Node& node) {
    for (const InterchangeableDevices& alike : node.alike) {
      const Device& device = node.spec.devices[alike.first];
      const bool suits = device.kind == request.kind && MatchesMake(device, request);
      if (suits) most = std::max(most, ShareOn(device, request));
    }
  });
  const int32_t share = most > 0 ? most : static_cast<int32_t>(kWhole);
  known_.emplace_back(request, share);
  return share;
}

}  // namespace berth
