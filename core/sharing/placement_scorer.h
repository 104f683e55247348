// The sharing policies: the score of placing a request on a node, and the best device there.
//
// Each policy has a loss: the value that a room has lost, in millionths of a device. The cost of a
// placement is the increase of the loss, in coarse steps; the lowest cost is the best.
//
//   spread         least free first is worst: what is left, negated
//   binpack        what is left: a device counts as much as 16 CPUs
//   fragmentation  Fragmentation + 5 % of Stranding (core/sharing/fragmentation.h)
//   fgd            only Fragmentation, by FGD's own score; for comparison
//   bid_price      what can still be earned with the room (RoomValue of the mix's values), negated,
//                  + 10 % of Fragmentation + 2 % of Stranding. A request earns its value, so the
//                  cost is the regret: what the placement spoils beyond what it earns. If the mix
//                  says so (RequestMix::score), with 30 % of Fragmentation, or as one of the two
//                  above.
//
//   shares of 500 earn 100, of 300 they earn 20. One of 300 on a device with 500 left spoils 100
//   and earns 20, so its regret is 80; on a device with 300 left it spoils what it earns: 0
//
// Steps are coarse on purpose (Weights::step): nearly equal places become equal and the first node
// in order is taken, so nodes fill up one after the other instead of all a little.
//
// If the mix has no values, bid_price works like fragmentation; without any types both work like
// binpack.
#ifndef BERTH_CORE_SHARING_PLACEMENT_SCORER_H_
#define BERTH_CORE_SHARING_PLACEMENT_SCORER_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "core/sharing/fragmentation.h"
#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"
#include "core/sharing/room_value.h"
#include "core/sharing/sharing_policy.h"

namespace berth {

struct Choice {
  bool fits = false;
  int16_t from = 0;   // for a share: what is left on its device; any with that much
  int64_t score = 0;  // lower is better
  bool operator==(const Choice&) const = default;
};

class PlacementScorer {
 public:
  PlacementScorer(SharingPolicy policy, RequestMix mix);

  // The best device in this room; ties go to the one with the least left, for spread to the one
  // with the most. The request need not be in the mix; then its value is 0.
  Choice Score(const Request& request, const NodeRoom& room);

  const RequestMix& mix() const { return mix_; }
  // The policy by which it decides.
  SharingPolicy policy() const { return policy_; }

 private:
  int64_t Loss(const NodeRoom& room);
  int64_t ComputeLoss(const NodeRoom& room);
  int64_t Cost(const Request& request, const NodeRoom& before, int16_t from, int64_t value);

  int64_t Weighed(const NodeRoom& room);

  SharingPolicy policy_;
  RequestMix mix_;
  Fragmentation fragmentation_;
  RoomValue value_;
  // For fragmentation and bid_price: weights in hundredths, and the step in hundredths of
  // millionths of a device.
  struct Weights {
    int64_t value = 0;
    int64_t fragmentation = 0;
    int64_t stranding = 0;
    int64_t step = 1;
  };
  static Weights WeightsOf(SharingPolicy policy, MixScore score);
  Weights weights_;
  absl::flat_hash_map<NodeRoom, int64_t> losses_;  // never iterated
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_PLACEMENT_SCORER_H_
