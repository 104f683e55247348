// Which devices of a node a task gets.
#ifndef BERTH_CORE_ENGINE_DEVICE_CHOICE_H_
#define BERTH_CORE_ENGINE_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/engine/policies.h"

namespace berth {

// Of each kind that it asks for, every healthy device of that node suits, as mostly where they are
// all of one model: only their number matters.
bool AnyDevicesDo(const Node& node, const TaskShape& shape);

// Prepared for one shape. The request's entry must outlive it. Deterministic: the lowest indexes in
// the node's device order that are healthy, unused and suit.
class DeviceChoice {
 public:
  explicit DeviceChoice(const ShapeRequest& request);

  // Every healthy device of its kind suits, so that enough free ones are all that is needed.
  bool any_will_do() const { return any_will_do_; }
  // The devices for one task; nullopt if the node has too few.
  std::optional<DeviceSet> Choose(const Offer& offer) const;
  // For how many tasks the free devices suffice, at most `bound`.
  int64_t SetsIn(const Offer& offer, int64_t bound) const;

 private:
  struct Wanted {
    const DeviceRequest* request;
    ResourceKind kind;
    bool any_does = false;  // every device of the kind suits
  };
  DeviceSet Candidates(const Offer& offer, const Wanted& wanted) const;

  absl::InlinedVector<Wanted, 2> wanted_;
  bool any_will_do_ = true;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DEVICE_CHOICE_H_
