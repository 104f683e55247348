// The quality of a link between two devices, as one number: greater is better.
//
// The order is that of the distance classes. NVLink (and XGMI) comes before all PCI classes,
// ordered by bandwidth:
//
//   unknown < SYS < SYS in one socket < NODE < PHB < PXB < PIX < NVLink, 1 link < 2 links < ...
//
// The numbers are MB/s, so that their sums are meaningful. They are those with which NCCL plans for
// PCIe 3 x16 (src/graph/topo.h: 12 GB/s; a path through the CPU is worth less), whatever the
// generation, as only the order matters within a node. NVLink gets an offset above the best PCI
// score, so that even one slow link precedes it.
#ifndef BERTH_CORE_DEVICES_LINK_SCORE_H_
#define BERTH_CORE_DEVICES_LINK_SCORE_H_

#include <algorithm>
#include <cstdint>

#include "core/model/device_topology.h"

namespace berth {

using LinkScore = int32_t;
inline constexpr LinkScore kNvlinkScore = 16'000;      // of NVLink with unknown bandwidth
inline constexpr LinkScore kSamePackageBonus = 2'000;  // for SYS
inline constexpr int64_t kNvlinkMbPerS = 25'000;       // of one link, NVLink 2 to 4, one direction
inline constexpr int64_t kMostMbPerS = 100'000'000;

// The minimum score of a link of that class.
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

// One direction. If the agent reports none: 25 GB/s per NVLink; PCIe 3 x16, 12 GB/s, four fifths of
// it through a host bridge, half of it between sockets.
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
