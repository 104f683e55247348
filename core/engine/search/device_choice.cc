#include "core/engine/search/device_choice.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

namespace berth {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool AnyDeviceSuits(const DeviceRequest& request) {
  return request.share == 0 && request.min_memory_bytes == 0 &&
         request.min_compute_capability == 0 && request.models.empty() &&
         request.deny_models.empty() && request.allow_uuids.empty() && request.deny_uuids.empty();
}

// By uuid and model.
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

// How many more tasks may share the device.
int64_t SharersLeft(const Offer& offer, size_t device) {
  const SharedDevice* shares = offer.used.SharesOf(device);
  const int64_t most = offer.node.spec.devices[device].max_tasks;
  return std::max<int64_t>(most - (shares == nullptr ? 0 : shares->tasks), 0);
}

bool MayShare(const Offer& offer, size_t device, const DeviceRequest& request) {
  const int64_t share = ShareOn(offer.node.spec.devices[device], request);
  return offer.used.FreeOf(device) >= share && SharersLeft(offer, device) > 0;
}

}  // namespace

bool AnyDevicesDo(const Node& node, const TaskShape& shape) {
  for (const DeviceRequest& request : shape.devices) {
    if (request.AsksForLinks()) return false;
    if (request.count == 0 || AnyDeviceSuits(request)) continue;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const Device& device = node.spec.devices[i];
      const bool asked = device.kind == request.kind && node.healthy.Has(i);
      if (asked && !(MatchesMake(device, request) && NameSuits(device, request))) return false;
    }
  }
  return true;
}

bool AnyDevicesDo(const TaskShape& shape) {
  return std::all_of(shape.devices.begin(), shape.devices.end(), [](const DeviceRequest& one) {
    return one.count == 0 || (AnyDeviceSuits(one) && !one.AsksForLinks());
  });
}

DeviceChoice::DeviceChoice(const ShapeRequest& request) {
  for (const DeviceRequest& one : request.entry.shape.devices) {
    if (one.count == 0) continue;
    const bool any_does = AnyDeviceSuits(one);
    wanted_.push_back({&one, *request.interner.FindKind(one.kind), any_does, FloorOf(one)});
    any_will_do_ = any_will_do_ && any_does && !one.AsksForLinks();
  }
  const auto is_nic = [](const Wanted& wanted) { return wanted.request->kind == kNicKind; };
  std::stable_partition(wanted_.begin(), wanted_.end(), std::not_fn(is_nic));
  near_nics_ = wanted_.size() > 1 && is_nic(wanted_.back());
}

// Whether in use or not.
DeviceSet DeviceChoice::Suitable(const Offer& offer, const Wanted& wanted) const {
  const std::vector<Device>& devices = offer.node.spec.devices;
  DeviceSet suitable;
  for (const InterchangeableDevices& alike : offer.node.alike) {
    if (alike.kind != wanted.kind) continue;
    const bool suits = wanted.any_does || MatchesMake(devices[alike.first], *wanted.request);
    if (suits) suitable |= alike.devices;
  }
  if (wanted.any_does || AnyNameDoes(*wanted.request)) return suitable;
  DeviceSet named;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (suitable.Has(i) && NameSuits(devices[i], *wanted.request)) named.Add(i);
  }
  return named;
}

DeviceSet DeviceChoice::Candidates(const Offer& offer, const Wanted& wanted) const {
  return Difference(Suitable(offer, wanted), offer.used.InUse());
}

// The devices that suit the share equally well; their links decide between them.
DeviceSet DeviceChoice::BestToShare(const Offer& offer, const Wanted& wanted,
                                    const ShareWish& wish) const {
  const DeviceSet suitable = Suitable(offer, wanted);
  DeviceSet best;
  int64_t best_free = 0;
  for (size_t i = 0; i < offer.node.spec.devices.size(); ++i) {
    if (!suitable.Has(i) || !MayShare(offer, i, *wanted.request)) continue;
    const int64_t free = offer.used.FreeOf(i);
    const bool wished = free == wish.left, had_wished = best_free == wish.left;
    const bool closer = wish.spread ? free > best_free : free < best_free;
    const bool better = best.Empty() || (wished != had_wished ? wished : closer);
    if (better) best = DeviceSet{};
    if (better) best_free = free;
    if (free == best_free) best.Add(i);
  }
  return best;
}

std::optional<DeviceSet> DeviceChoice::Choose(const Offer& offer, const DeviceSet& rails,
                                              const ShareWish& wish) const {
  DeviceSet chosen;
  for (const Wanted& wanted : wanted_) {
    const bool shares = wanted.request->share > 0;
    const DeviceSet from = shares ? BestToShare(offer, wanted, wish) : Candidates(offer, wanted);
    if (!Take(offer, wanted, from, rails, &chosen)) return std::nullopt;
  }
  return chosen;
}

bool DeviceChoice::Take(const Offer& offer, const Wanted& wanted, const DeviceSet& from,
                        const DeviceSet& rails, DeviceSet* chosen) const {
  const DeviceLayout* layout = offer.node.layout;
  if (layout != nullptr) {
    if (&wanted == nics()) return TakeNics(offer, wanted, rails, chosen);
    const KindLayout* kind = layout->Of(wanted.request->kind);
    if (kind != nullptr) return TakeBest(offer, wanted, *kind, from, rails, chosen);
  }
  if (wanted.floor.any()) return false;
  return TakeLowest(from, wanted.request->count, chosen);
}

bool DeviceChoice::TakeBest(const Offer& offer, const Wanted& wanted, const KindLayout& layout,
                            const DeviceSet& from, const DeviceSet& rails,
                            DeviceSet* chosen) const {
  SetQuery query{
      .candidates = layout.MaskOf(from), .size = wanted.request->count, .floor = wanted.floor};
  std::vector<LinkScore> near;
  const bool any_choice = std::popcount(query.candidates) > query.size;
  if (any_choice && nics() != nullptr && layout.nics > 0) {
    const KindMask free = layout.NicMaskOf(Candidates(offer, *nics()));
    near = NicNear(layout, free, query.size, nics()->request->count);
    query.nic_near = near;
    query.preferred = layout.MaskOf(rails);
  }
  const KindMask set = BestSet(layout, query);
  *chosen |= layout.SetOf(set);
  return set != 0;
}

// The first of the other requested kinds whose distances to NICs are known.
const KindLayout* DeviceChoice::Hub(const Node& node) const {
  for (const Wanted& wanted : wanted_) {
    const KindLayout* layout = node.layout->Of(wanted.request->kind);
    if (layout != nullptr && layout->nics > 0) return layout;
  }
  return nullptr;
}

bool DeviceChoice::TakeNics(const Offer& offer, const Wanted& wanted, const DeviceSet& rails,
                            DeviceSet* chosen) const {
  if (wanted.floor.any()) return false;  // links between NICs are unknown
  const DeviceSet candidates = Candidates(offer, wanted);
  const KindLayout* hub = Hub(offer.node);
  if (hub == nullptr) return TakeLowest(candidates, wanted.request->count, chosen);
  const KindMask nics = NearestNics(*hub, hub->MaskOf(*chosen), hub->NicMaskOf(candidates),
                                    wanted.request->count, hub->NicMaskOf(rails));
  *chosen |= hub->NicSetOf(nics);
  return nics != 0;
}

int64_t DeviceChoice::SharesIn(const Offer& offer, const Wanted& wanted, int64_t bound) const {
  const DeviceSet suitable = Suitable(offer, wanted);
  int64_t count = 0;
  for (size_t i = 0; i < offer.node.spec.devices.size() && count < bound; ++i) {
    if (!suitable.Has(i)) continue;
    const int64_t share = ShareOn(offer.node.spec.devices[i], *wanted.request);
    count += std::min(offer.used.FreeOf(i) / share, SharersLeft(offer, i));
  }
  return std::min(count, bound);
}

int64_t DeviceChoice::SetsIn(const Offer& offer, int64_t bound) const {
  for (const Wanted& wanted : wanted_) {
    if (wanted.request->share > 0) {
      bound = SharesIn(offer, wanted, bound);
      continue;
    }
    const DeviceSet candidates = Candidates(offer, wanted);
    bound = std::min<int64_t>(bound, candidates.Count() / wanted.request->count);
    if (bound == 0 || !wanted.floor.any()) continue;
    const KindLayout* layout =
        offer.node.layout == nullptr ? nullptr : offer.node.layout->Of(wanted.request->kind);
    if (layout == nullptr) return 0;
    const SetQuery query{.candidates = layout->MaskOf(candidates),
                         .size = wanted.request->count,
                         .floor = wanted.floor};
    bound = CountSets(*layout, query, bound);
  }
  return bound;
}

}  // namespace berth
