// NodeRoom: what remains on a node for requests of devices of one kind.
//
//   64 CPUs and devices with 1000, 400, 0, 1000 thousandths left: whole 2, parts {400}
//
// The identity of devices does not matter here: devices with equal remainders are interchangeable,
// so rooms with equal content are equal. (core/devices/best_set.h chooses among the whole devices.)
#ifndef BERTH_CORE_SHARING_NODE_ROOM_H_
#define BERTH_CORE_SHARING_NODE_ROOM_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/sharing/request_mix.h"

namespace berth {

// Rooms are counted in thousandths of a device, their values and fragments in millionths.
inline constexpr int64_t kMicrosPerThousandth = 1000;

struct NodeRoom {
  int64_t cpu_millis = 0;
  int64_t memory_mib = 0;  // 0 if it is not counted (core/sharing/host_resource.h)
  int32_t model = -1;      // index in RequestMix::models; -1: none of them
  int32_t whole = 0;       // completely free devices
  // The remainders of the others, in thousandths: ascending, without zeros.
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

// True if the request fits; a share needs a device with at least that much left.
bool Fits(const Request& request, const NodeRoom& room);

// What remains after placing it; a share goes on a device with `from` left, which must suffice.
NodeRoom After(const NodeRoom& room, const Request& request, int16_t from);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_NODE_ROOM_H_
