#include "core/sharing/host_resource.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"

namespace berth {
namespace {

constexpr int64_t kMillisPerCore = 1000;

int64_t CountedMillis(int64_t cpu_millis, int64_t memory_mib, int64_t mib_per_core) {
  if (mib_per_core == 0) return cpu_millis;
  const absl::int128 millis =
      (absl::int128(memory_mib) * kMillisPerCore + mib_per_core - 1) / mib_per_core;
  return static_cast<int64_t>(std::min<absl::int128>(millis, kMaxRoomCpuMillis));
}

}  // namespace

int64_t MibPerCore(const RequestMix& mix, absl::Span<const NodeRoom> rooms) {
  absl::int128 cpu_asked = 0, memory_asked = 0, cpu = 0, memory = 0;
  for (const RequestType& type : mix.types) {
    cpu_asked += absl::int128(type.weight) * type.request.cpu_millis;
    memory_asked += absl::int128(type.weight) * type.request.memory_mib;
  }
  for (const NodeRoom& room : rooms) {
    cpu += room.cpu_millis;
    memory += room.memory_mib;
  }
  // Sums of at most 10^9 terms of at most 10^9: products stay far below 2^127.
  if (memory_asked * cpu <= cpu_asked * memory || cpu == 0) return 0;
  const absl::int128 each = memory * kMillisPerCore / cpu;
  return static_cast<int64_t>(std::clamp<absl::int128>(each, 1, kMaxRoomMemoryMib));
}

Request Counted(Request request, int64_t mib_per_core) {
  request.cpu_millis = CountedMillis(request.cpu_millis, request.memory_mib, mib_per_core);
  request.memory_mib = 0;
  return request;
}

NodeRoom Counted(NodeRoom room, int64_t mib_per_core) {
  room.cpu_millis = CountedMillis(room.cpu_millis, room.memory_mib, mib_per_core);
  room.memory_mib = 0;
  return room;
}

RequestMix Counted(RequestMix mix, int64_t mib_per_core) {
  for (RequestType& type : mix.types) type.request = Counted(type.request, mib_per_core);
  RequestMix counted = MixOf(std::move(mix.models), std::move(mix.types));
  counted.mib_per_core = mib_per_core;
  return counted;
}

Request Uncounted(Request request, int64_t mib_per_core) {
  if (mib_per_core == 0) return request;
  const absl::int128 mib = absl::int128(request.cpu_millis) * mib_per_core / kMillisPerCore;
  request.memory_mib = static_cast<int64_t>(std::min<absl::int128>(mib, kMaxRoomMemoryMib));
  request.cpu_millis = 0;
  return request;
}

DeviceDemand CountedFor(SharingPolicy policy, DeviceDemand demand) {
  const bool by_cpu = policy == SharingPolicy::kFgd;
  const int64_t mib_per_core = by_cpu ? 0 : MibPerCore(demand.mix, demand.rooms);
  demand.mix = Counted(std::move(demand.mix), mib_per_core);
  for (NodeRoom& room : demand.rooms) room = Counted(std::move(room), mib_per_core);
  return demand;
}

}  // namespace berth
