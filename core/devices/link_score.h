// How good a way between two devices is, as one number: greater is better.
//
// The order is that of the distance classes, NVLink (and XGMI) by bandwidth before all of PCI:
//
//   unknown < SYS < SYS in one socket < NODE < PHB < PXB < PIX < NVLink, 1 link < 2 links < ...
//
// The numbers are MB/s, so that sums of them mean something: what NCCL plans with for PCIe 3 x16
// (src/graph/topo.h: 12 GB/s; a way through the CPU is worth less), whatever the generation, as
// only the order counts in one node. NVLink is set off by more than the best of PCI, so that even
// one slow link goes before it.
#ifndef BERTH_CORE_DEVICES_LINK_SCORE_H_
#define BERTH_CORE_DEVICES_LINK_SCORE_H_

#include <algorithm>
#include <cstdint>

#include "core/model/device_topology.h"

namespace berth {

using LinkScore = int32_t;
inline constexpr LinkScore kNvlinkScore = 16'000;      // of NVLink without bandwidth
inline constexpr LinkScore kSamePackageBonus = 2'000;  // of SYS
inline constexpr int64_t kNvlinkMbPerS = 25'000;       // of one link, NVLink 2 to 4, one direction
inline constexpr int64_t kMostMbPerS = 100'000'000;

// What a way of that class is worth at least.
constexpr LinkScore LeastScore(LinkClass link) {
  switch (link) {
    case LinkClass::kUnknown:
      return 0;
    case LinkClass::kNvlink:
      return kNvlinkScore;
    case LinkClass::kPix:
      return 12'000;
    case LinkClass::kPxb:
      return 11'500;
    case LinkClass::kPhb:
      return 9'600;
    case LinkClass::kNode:
      return 9'500;
    case LinkClass::kSys:
      return 5'000;
  }
  return 0;
}

// One direction; where the agent does not tell, 25 GB/s for each NVLink, and PCIe 3 x16: 12 GB/s,
// four fifths of it through a host bridge, half of it between sockets.
constexpr int64_t MbPerS(const DeviceLink& link) {
  if (link.mb_per_s > 0) return std::min(link.mb_per_s, kMostMbPerS);
  switch (link.link) {
    case LinkClass::kUnknown:
      return 0;
    case LinkClass::kNvlink:
      return std::clamp<int64_t>(link.count, 1, kMostMbPerS / kNvlinkMbPerS) * kNvlinkMbPerS;
    case LinkClass::kPix:
    case LinkClass::kPxb:
      return 12'000;
    case LinkClass::kPhb:
    case LinkClass::kNode:
      return 9'600;
    case LinkClass::kSys:
      return link.same_package ? 7'200 : 6'000;
  }
  return 0;
}

constexpr LinkScore ScoreOf(const DeviceLink& link) {
  LinkScore score = LeastScore(link.link);
  if (link.link == LinkClass::kNvlink) score += static_cast<LinkScore>(MbPerS(link));
  if (link.link == LinkClass::kSys && link.same_package) score += kSamePackageBonus;
  return score;
}

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_LINK_SCORE_H_
