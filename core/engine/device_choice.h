// Which devices of a node a task gets.
#ifndef BERTH_CORE_ENGINE_DEVICE_CHOICE_H_
#define BERTH_CORE_ENGINE_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/devices/best_set.h"
#include "core/engine/policies.h"

namespace berth {

// Of each kind that it asks for, every healthy device of that node suits, as mostly where they are
// all of one model: only their number matters.
bool AnyDevicesDo(const Node& node, const TaskShape& shape);

// Which device of a node a share is of: one with so much left, if there is one (0: not said); else
// the one with the least left that has room for it, or, with `spread`, the most.
struct ShareWish {
  int64_t left = 0;
  bool spread = false;
};

// Prepared for one shape. The request's entry must outlive it. Deterministic. Of the devices that
// are healthy, unused and suit:
//  - where the node tells how they are connected, the best set (core/devices/best_set.h), and the
//    NICs nearest to it;
//  - else those with the lowest indexes in the node's device order. Nothing is known of their links
//    then, so that several with a least link are not to be had there.
class DeviceChoice {
 public:
  explicit DeviceChoice(const ShapeRequest& request);

  // Every healthy device of its kind suits, and those that are not in use are free wholly: then
  // enough of them are all that is needed.
  bool AmountsSuffice(const Offer& offer) const {
    return any_will_do_ && offer.used.shared.empty();
  }
  // Devices that those of other nodes should be like, as they serve the same gang.
  bool minds_rails() const { return near_nics_; }
  // The devices for one task; nullopt if the node has too few. Of equally good ones those in
  // `rails`, by position in the node, where minds_rails().
  std::optional<DeviceSet> Choose(const Offer& offer, const DeviceSet& rails = {},
                                  const ShareWish& wish = {}) const;
  // For how many tasks the free devices suffice, at most `bound`. Where links have a floor: if they
  // are chosen one after the other.
  int64_t SetsIn(const Offer& offer, int64_t bound) const;

 private:
  struct Wanted {
    const DeviceRequest* request;
    ResourceKind kind;
    bool any_does = false;  // every device of the kind suits
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
  bool near_nics_ = false;  // NICs are asked for beside other devices
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DEVICE_CHOICE_H_
