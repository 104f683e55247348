#include "core/history/capacity_split.h"

#include <algorithm>

namespace berth {
namespace {

CapacityParts& PartsOf(CapacitySplit& split, DeviceKey of) {
  const auto at = std::lower_bound(
      split.begin(), split.end(), of,
      [](const CapacityShare& share, const DeviceKey& key) { return share.of < key; });
  if (at != split.end() && at->of == of) return at->parts;
  return split.insert(at, CapacityShare{.of = of, .parts = {}})->parts;
}

int64_t& At(CapacityParts& parts, CapacityPart part) { return parts[static_cast<size_t>(part)]; }

// The state of a resource, or of a device, of which something may be left.
struct Whereabouts {
  int64_t total = 0, held = 0, reserved = 0;
  bool unhealthy = false;
  bool drained = false;
};

CapacityPart PartOfRest(const Node& node, bool drained) {
  if (drained || !TakesTasks(node.status)) return CapacityPart::kCordoned;
  return node.tasks.empty() ? CapacityPart::kFree : CapacityPart::kFragmented;
}

void Divide(const Node& node, const Whereabouts& of, CapacityParts& parts) {
  At(parts, CapacityPart::kTotal) += of.total;
  At(parts, CapacityPart::kHeld) += of.held;
  At(parts, CapacityPart::kOvercommitted) += std::max<int64_t>(of.held - of.total, 0);
  int64_t rest = std::max<int64_t>(of.total - of.held, 0);
  if (node.status.state != NodeState::kReady) {
    At(parts, CapacityPart::kDown) += rest;
    return;
  }
  if (of.unhealthy) {
    At(parts, CapacityPart::kUnhealthy) += rest;
    return;
  }
  const int64_t reserved = std::clamp<int64_t>(of.reserved, 0, rest);
  At(parts, CapacityPart::kReserved) += reserved;
  At(parts, PartOfRest(node, of.drained)) += rest - reserved;
}

int64_t ThousandthsOf(const DeviceUse& use, size_t device) {
  const SharedDevice* shared = use.SharesOf(device);
  return (use.whole.Has(device) ? kWhole : 0) + (shared == nullptr ? 0 : shared->share);
}

Resources AmountsOfDevices(const DeviceUse& use, absl::Span<const DeviceKey> devices) {
  Resources sum;
  for (size_t i = 0; i < devices.size(); ++i) sum[devices[i].kind] += ThousandthsOf(use, i);
  return sum;
}

}  // namespace

CapacitySplit SplitCapacity(const Node& node, absl::Span<const DeviceKey> devices) {
  CapacitySplit split;
  const DeviceUse claimed = ClaimedDevices(node);
  const Resources in_devices = AmountsOfDevices(node.devices_used, devices);
  const Resources claimed_devices = AmountsOfDevices(claimed, devices);
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const Whereabouts of{.total = node.capacity.amount[i],
                         .held = node.allocated.amount[i] - in_devices.amount[i],
                         .reserved = node.reserved.amount[i] - claimed_devices.amount[i]};
    if (of.total == 0 && of.held == 0) continue;
    Divide(node, of, PartsOf(split, {ResourceKind{static_cast<uint8_t>(i)}, kNoModel}));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    const Whereabouts of{.total = kWhole,
                         .held = ThousandthsOf(node.devices_used, i),
                         .reserved = ThousandthsOf(claimed, i),
                         .unhealthy = node.spec.devices[i].unhealthy,
                         .drained = node.status.drain.devices.Has(i)};
    Divide(node, of, PartsOf(split, devices[i]));
  }
  return split;
}

std::vector<DividedAmount> DivideAmounts(const Resources& amounts, const DeviceUse& use,
                                         absl::Span<const DeviceKey> devices) {
  std::vector<DividedAmount> divided;
  Resources rest = amounts;
  const auto add = [&](DeviceKey of, int64_t amount) {
    rest[of.kind] -= amount;
    for (DividedAmount& one : divided) {
      if (one.of != of) continue;
      one.amount += amount;
      return;
    }
    divided.push_back({of, amount});
  };
  for (size_t i = 0; i < devices.size(); ++i) {
    const int64_t amount = ThousandthsOf(use, i);
    if (amount != 0) add(devices[i], amount);
  }
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (rest.amount[i] == 0) continue;
    divided.push_back({{ResourceKind{static_cast<uint8_t>(i)}, kNoModel}, rest.amount[i]});
  }
  return divided;
}

}  // namespace berth
