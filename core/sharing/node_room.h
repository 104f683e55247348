// NodeRoom: what is left on a node for requests of devices of one kind.
//
//   64 CPUs and devices with 1000, 400, 0, 1000 thousandths left: whole 2, parts {400}
//
// Which device is which does not matter here: devices with as much left stand for each other, so
// rooms are equal when they hold the same. (Which of the whole devices are taken is the business
// of core/devices/best_set.h.)
#ifndef BERTH_CORE_SHARING_NODE_ROOM_H_
#define BERTH_CORE_SHARING_NODE_ROOM_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/sharing/request_mix.h"

namespace berth {

struct NodeRoom {
  int64_t cpu_millis = 0;
  int64_t memory_mib = 0;  // 0 where it does not count (core/sharing/host_resource.h)
  int32_t model = -1;      // index in RequestMix::models; -1: none of them
  int32_t whole = 0;       // devices that are free altogether
  // What is left of the others, in thousandths: ascending, without those of which nothing is left.
  absl::InlinedVector<int16_t, 8> parts;

  // In thousandths of a device.
  int64_t amount() const;
  bool operator==(const NodeRoom&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const NodeRoom& v) {
    return H::combine(std::move(h), v.cpu_millis, v.memory_mib, v.model, v.whole, v.parts);
  }
};

// Without memory. `left` by device, each from 0 to kWholeDevice; at most kMaxRoomDevices. CPU from
// 0 to kMaxRoomCpuMillis.
NodeRoom RoomOf(int64_t cpu_millis, int32_t model, absl::Span<const int16_t> left);

// There is a place for it: for a share, on a device with at least so much left.
bool Fits(const Request& request, const NodeRoom& room);

// What is left once it is there; a share on a device that has `from` left, which is enough.
NodeRoom After(const NodeRoom& room, const Request& request, int16_t from);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_NODE_ROOM_H_
