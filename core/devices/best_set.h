// Chooses which free devices of one kind a task gets.
//
// Of all sets of the requested size, the best is the one with, in this order:
//   1. the best worst link between two of its devices (LinkScore): it limits collectives;
//   2. the nearest NIC, for the device that is farthest from one;
//   3. the fewest NUMA nodes;
//   4. the best-connected rest: the greatest sum of scores between the remaining devices, where a
//      pair in one NUMA node counts slightly more. So a quad is not broken for a pair if a loose
//      pair is free;
//   5. the most preferred devices (the same rails as elsewhere);
//   6. the lowest indexes, in order.
//
//   8 GPUs of PCIe, in switches of 2; free 0 1 2 3 4 7; 2 requested
//     {0,1} and {2,3} are PIX, all others worse; {0,1} leaves {2,3} 4 7, {2,3} leaves {0,1} 4 7:
//     equal, so {0,1}
//
// For up to eight devices a table has the answers (KindLayout::best). Otherwise a search tries each
// occurring score, from the best down, and builds the sets without a worse link in order of index;
// the first score with any set has the best one. Devices that are equal in every respect (twins)
// are interchangeable, so only the first of them are tried: 16 GPUs behind NVLink switches on two
// sockets are two classes of twins, which leaves 9 of C(16,8) = 12,870 sets. After kMaxSteps the
// search returns the best set found so far.
#ifndef BERTH_CORE_DEVICES_BEST_SET_H_
#define BERTH_CORE_DEVICES_BEST_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/devices/device_layout.h"
#include "core/model/job.h"

namespace berth {

// Required of every two devices of a set.
struct LinkFloor {
  LinkScore score = 0;
  int64_t mb_per_s = 0;
  bool any() const { return score > 0 || mb_per_s > 0; }
};
LinkFloor FloorOf(const DeviceRequest& request);

struct SetQuery {
  KindMask candidates = 0;
  int32_t size = 0;
  LinkFloor floor = {};
  // By device, replaces KindLayout::nic_near; empty = not replaced.
  absl::Span<const LinkScore> nic_near = {};
  KindMask preferred = 0;
};

// 0 if no set meets the floor. Size 1 or more.
KindMask BestSet(const KindLayout& layout, const SetQuery& query);

// The same without the table; used to fill it.
KindMask SearchBestSet(const KindLayout& layout, const SetQuery& query);
inline constexpr int64_t kMaxSteps = 1000;  // limit of added devices among sets of one worst score
inline constexpr int64_t kMostSteps = 20'000;  // likewise while there is no set; then none is found

bool MeetsFloor(const KindLayout& layout, KindMask set, const LinkFloor& floor);

// The number of tasks for which the candidates suffice if each takes its best set, at most `bound`.
int64_t CountSets(const KindLayout& layout, SetQuery query, int64_t bound);

// The ring order of the devices with the best worst link; ties by the greatest sum, then the lowest
// indexes first. Starts with the lowest. Exact for up to eight devices; otherwise each device is
// followed by the nearest remaining one.
std::vector<size_t> RingOrder(const KindLayout& layout, KindMask set);

// The NICs nearest to these devices: each device gets one, the nearest pairs first, then each a
// second one, until there are `count`. Among equally near ones the preferred, then the lowest. 0 if
// there are fewer candidates. A mask of the node's NICs, starting at KindLayout::first_nic.
KindMask NearestNics(const KindLayout& layout, KindMask devices, KindMask candidates, int32_t count,
                     KindMask preferred);

// The distance of each device to NICs if every one gets its share of `count` for `devices` of them:
// the score of the last NIC that it would get alone.
std::vector<LinkScore> NicNear(const KindLayout& layout, KindMask candidates, int32_t devices,
                               int32_t count);

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_BEST_SET_H_
