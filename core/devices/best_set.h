// Which of the free devices of one kind a task gets.
//
// Of all sets of the size asked for, the best is the one with, in this order:
//   1. the best worst link between two of its devices (LinkScore): collectives go at its pace;
//   2. the nearest NIC, of the device that has it farthest;
//   3. the fewest NUMA nodes;
//   4. the best-connected rest: the greatest sum of scores between the devices left over, where a
//      pair in one NUMA node counts a little more. So a quad is not broken for a pair that a loose
//      pair can serve;
//   5. the most devices that are preferred (the same rails as elsewhere);
//   6. the lowest indexes, in order.
//
//   8 GPUs of PCIe, in switches of 2; free 0 1 2 3 4 7; 2 asked for
//     {0,1} and {2,3} are PIX, all others worse; {0,1} leaves {2,3} 4 7, {2,3} leaves {0,1} 4 7:
//     equal, so {0,1}
//
// For up to eight devices the answers stand in a table (KindLayout::best). Else they are searched:
// for each score that occurs, from the best down, the sets in which no link is worse, built up in
// order of index; the first score with any has the best one. Devices that are alike in every
// respect (twins) stand for each other, so of them only the first are tried: 16 GPUs behind NVLink
// switches on two sockets are two sorts of twins, and instead of C(16,8) = 12,870 sets 9 are looked
// at. After kMaxSteps the best set found so far is taken.
#ifndef BERTH_CORE_DEVICES_BEST_SET_H_
#define BERTH_CORE_DEVICES_BEST_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/devices/device_layout.h"
#include "core/model/job.h"

namespace berth {

// What every two devices of a set must have.
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
  // By device, in place of KindLayout::nic_near; empty = that.
  absl::Span<const LinkScore> nic_near = {};
  KindMask preferred = 0;
};

// 0 if no set meets the floor. Size 1 or more.
KindMask BestSet(const KindLayout& layout, const SetQuery& query);

// The same without looking into the table: what fills it.
KindMask SearchBestSet(const KindLayout& layout, const SetQuery& query);
inline constexpr int64_t kMaxSteps = 1000;  // devices added to sets of one worst score, at most
inline constexpr int64_t kMostSteps =
    20'000;  // likewise, if there is no set yet: then none is found

bool MeetsFloor(const KindLayout& layout, KindMask set, const LinkFloor& floor);

// For how many tasks the candidates suffice if each takes its best set, at most `bound`.
int64_t CountSets(const KindLayout& layout, SetQuery query, int64_t bound);

// The order in which a ring through the devices has the best worst link; of equal ones the greatest
// sum, then the lowest indexes first. Begins with the lowest. Exact for up to eight devices; else
// each is followed by the nearest that is left.
std::vector<size_t> RingOrder(const KindLayout& layout, KindMask set);

// The NICs nearest to these devices: each device gets one, the nearest first, then each a second
// one, until there are `count`. Of equally near ones the preferred, then the lowest. 0 if there are
// fewer candidates. A mask of the node's NICs, from KindLayout::first_nic on.
KindMask NearestNics(const KindLayout& layout, KindMask devices, KindMask candidates, int32_t count,
                     KindMask preferred);

// How near each device is to NICs if every one gets its share of `count` for `devices` of them: the
// score of the last that it would get, as if it were alone.
std::vector<LinkScore> NicNear(const KindLayout& layout, KindMask candidates, int32_t devices,
                               int32_t count);

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_BEST_SET_H_
