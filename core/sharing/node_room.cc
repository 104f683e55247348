#include "core/sharing/node_room.h"

#include <algorithm>

#include "core/base/check.h"

namespace berth {

int64_t NodeRoom::amount() const {
  int64_t sum = whole * kWholeDevice;
  for (const int16_t part : parts) sum += part;
  return sum;
}

NodeRoom RoomOf(int64_t cpu_millis, int32_t model, absl::Span<const int16_t> left) {
  BERTH_CHECK(left.size() <= kMaxRoomDevices);
  NodeRoom room;
  room.cpu_millis = cpu_millis;
  room.model = model;
  for (const int16_t amount : left) {
    BERTH_CHECK(amount >= 0 && amount <= kWholeDevice);
    if (amount == kWholeDevice) {
      ++room.whole;
    } else if (amount > 0) {
      room.parts.push_back(amount);
    }
  }
  std::sort(room.parts.begin(), room.parts.end());
  return room;
}

bool Fits(const Request& request, const NodeRoom& room) {
  if (request.cpu_millis > room.cpu_millis || request.devices > room.whole) return false;
  if (request.memory_mib > room.memory_mib) return false;
  if (request.amount() > 0 && !request.AllowsModel(room.model)) return false;
  return request.share == 0 || room.whole > 0 ||
         (!room.parts.empty() && room.parts.back() >= request.share);
}

NodeRoom After(const NodeRoom& room, const Request& request, int16_t from) {
  NodeRoom after = room;
  after.cpu_millis -= request.cpu_millis;
  after.memory_mib -= request.memory_mib;
  after.whole -= request.devices;
  if (request.share == 0) return after;
  if (from == kWholeDevice) {
    --after.whole;
  } else {
    const auto it = std::lower_bound(after.parts.begin(), after.parts.end(), from);
    BERTH_CHECK(it != after.parts.end() && *it == from);
    after.parts.erase(it);
  }
  const auto left = static_cast<int16_t>(from - request.share);
  if (left > 0) {
    after.parts.insert(std::upper_bound(after.parts.begin(), after.parts.end(), left), left);
  }
  return after;
}

}  // namespace berth
