// Which devices of a node a task gets.
#ifndef BERTH_CORE_ENGINE_SEARCH_DEVICE_CHOICE_H_
#define BERTH_CORE_ENGINE_SEARCH_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/devices/best_set.h"
#include "core/engine/policies.h"

namespace berth {

// For each requested kind, every healthy device of the node matches, as is usual if all are of one
// model. Then only their number matters.
bool AnyDevicesDo(const Node& node, const TaskShape& shape);

// Which device a share should use: one with exactly `left` remaining, if there is one (0: no wish);
// otherwise the one with the least room left that suffices, or the most with `spread`.
struct ShareWish {
  int64_t left = 0;
  bool spread = false;
};

// Every device of the requested kinds matches, and its links do not matter.
bool AnyDevicesDo(const TaskShape& shape);

// Prepared for one shape. The request's entry must outlive it. Deterministic. Of the healthy,
// unused, matching devices it chooses:
//  - if the node reports its links: the best set (core/devices/best_set.h) and the NICs nearest to
//    it;
//  - otherwise those with the lowest indexes in the node's device order. Links are unknown then, so
//    a request for several devices with a link floor cannot be met there.
class DeviceChoice {
 public:
  explicit DeviceChoice(const ShapeRequest& request);

  // Every healthy device of the kind matches, and the unused ones are wholly free: then only their
  // number matters.
  bool AmountsSuffice(const Offer& offer) const {
    return any_will_do_ && offer.used.shared.empty();
  }
  // The gang's devices on different nodes should be on the same rails.
  bool minds_rails() const { return near_nics_; }
  // The devices for one task; nullopt if the node has too few. Among equally good ones it prefers
  // `rails`, by position in the node, if minds_rails().
  std::optional<DeviceSet> Choose(const Offer& offer, const DeviceSet& rails = {},
                                  const ShareWish& wish = {}) const;
  // How many tasks the free devices hold, at most `bound`. With a link floor: if chosen one after
  // the other.
  int64_t SetsIn(const Offer& offer, int64_t bound) const;

 private:
  struct Wanted {
    const DeviceRequest* request;
    ResourceKind kind;
    bool any_does = false;  // every device of the kind matches
    LinkFloor floor = {};
  };
  DeviceSet Suitable(const Offer& offer, const Wanted& wanted) const;
  DeviceSet Candidates(const Offer& offer, const Wanted& wanted) const;
  DeviceSet BestToShare(const Offer& offer, const Wanted& wanted, const ShareWish& wish) const;
  int64_t SharesIn(const Offer& offer, const Wanted& wanted, int64_t bound) const;
  bool Take(const Offer& offer, const Wanted& wanted, const DeviceSet& from, const DeviceSet& rails,
            DeviceSet* chosen) const;
  bool TakeBest(const Offer& offer, const Wanted& wanted, const KindLayout& layout,
                const DeviceSet& from, const DeviceSet& rails, DeviceSet* chosen) const;
  bool TakeNics(const Offer& offer, const Wanted& wanted, const DeviceSet& rails,
                DeviceSet* chosen) const;
  const KindLayout* Hub(const Node& node) const;

  absl::InlinedVector<Wanted, 2> wanted_;  // NICs last
  const Wanted* nics() const { return near_nics_ ? &wanted_.back() : nullptr; }
  bool any_will_do_ = true;
  bool near_nics_ = false;  // NICs are requested along with other devices
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_DEVICE_CHOICE_H_
