#include "core/engine/device_choice.h"

#include <algorithm>

namespace berth {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool AnyDeviceDoes(const DeviceRequest& request) {
  return request.min_memory_bytes == 0 && request.models.empty() && request.deny_models.empty() &&
         request.allow_uuids.empty() && request.deny_uuids.empty();
}

// By what devices have in common, and by what each is called.
bool ModelSuits(const Device& device, const DeviceRequest& request) {
  return device.memory_bytes >= request.min_memory_bytes &&
         (request.models.empty() || Contains(request.models, device.model)) &&
         !Contains(request.deny_models, device.model);
}
bool NameSuits(const Device& device, const DeviceRequest& request) {
  return (request.allow_uuids.empty() || Contains(request.allow_uuids, device.uuid)) &&
         !Contains(request.deny_uuids, device.uuid);
}
bool AnyNameDoes(const DeviceRequest& request) {
  return request.allow_uuids.empty() && request.deny_uuids.empty();
}

// Moves the lowest `count` members to `chosen`; false if there are fewer.
bool TakeLowest(const DeviceSet& from, int32_t count, DeviceSet* chosen) {
  for (size_t word = 0; word < from.bits.size(); ++word) {
    for (uint64_t rest = from.bits[word]; rest != 0 && count > 0; rest &= rest - 1, --count) {
      chosen->bits[word] |= rest & (~rest + 1);
    }
  }
  return count == 0;
}

}  // namespace

bool AnyDevicesDo(const Node& node, const TaskShape& shape) {
  for (const DeviceRequest& request : shape.devices) {
    if (request.count == 0 || AnyDeviceDoes(request)) continue;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const Device& device = node.spec.devices[i];
      const bool asked = device.kind == request.kind && node.healthy.Has(i);
      if (asked && !(ModelSuits(device, request) && NameSuits(device, request))) return false;
    }
  }
  return true;
}

DeviceChoice::DeviceChoice(const ShapeRequest& request) {
  for (const DeviceRequest& one : request.entry.shape.devices) {
    if (one.count == 0) continue;
    const bool any_does = AnyDeviceDoes(one);
    wanted_.push_back({&one, *request.interner.FindKind(one.kind), any_does});
    any_will_do_ = any_will_do_ && any_does;
  }
}

DeviceSet DeviceChoice::Candidates(const Offer& offer, const Wanted& wanted) const {
  const std::vector<Device>& devices = offer.node.spec.devices;
  DeviceSet suitable;
  for (const AlikeDevices& alike : offer.node.alike) {
    if (alike.kind != wanted.kind) continue;
    const bool suits = wanted.any_does || ModelSuits(devices[alike.first], *wanted.request);
    if (suits) suitable |= alike.devices;
  }
  suitable -= offer.used;
  if (wanted.any_does || AnyNameDoes(*wanted.request)) return suitable;
  DeviceSet named;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (suitable.Has(i) && NameSuits(devices[i], *wanted.request)) named.Add(i);
  }
  return named;
}

std::optional<DeviceSet> DeviceChoice::Choose(const Offer& offer) const {
  DeviceSet chosen;
  for (const Wanted& wanted : wanted_) {
    const DeviceSet candidates = Candidates(offer, wanted);
    if (!TakeLowest(candidates, wanted.request->count, &chosen)) return std::nullopt;
  }
  return chosen;
}

int64_t DeviceChoice::SetsIn(const Offer& offer, int64_t bound) const {
  for (const Wanted& wanted : wanted_) {
    bound = std::min<int64_t>(bound, Candidates(offer, wanted).Count() / wanted.request->count);
  }
  return bound;
}

}  // namespace berth
