#include "core/engine/search/demand_watch.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// core/sharing does not depend on the model; both count devices alike.
static_assert(kWholeDevice == kWhole);
static_assert(kMaxRoomDevices == kMaxDevicesPerNode);

constexpr int64_t kMostAtOnce = 1000;  // of one group: more equal tasks add no information

// Rounds up both requests and free memory, so whatever fits still does.
int64_t MibOf(int64_t bytes) {
  constexpr int64_t kMib = 1 << 20;
  return std::clamp<int64_t>(bytes / kMib + (bytes % kMib > 0 ? 1 : 0), 0, kMaxRoomMemoryMib);
}

int32_t IndexIn(const std::vector<std::string>& names, absl::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int32_t>(found - names.begin());
}

}  // namespace

Request RequestOf(const TaskShape& shape, const std::vector<std::string>& models) {
  Request request{.cpu_millis = std::min(shape.cpu_millis, kMaxRoomCpuMillis),
                  .memory_mib = MibOf(shape.memory_bytes)};
  for (const DeviceRequest& one : shape.devices) {
    if (one.kind != kSharedKind) continue;
    request.share = std::min<int32_t>(one.share, kWholeDevice - 1);
    request.devices = one.share > 0 ? 0 : one.count;
    for (const std::string& model : one.models) {
      const int32_t index = IndexIn(models, model);
      if (index >= 0) request.models |= uint64_t{1} << index;
      if (index < 0) {  // any model may match: filters decide
        request.models = 0;
        break;
      }
    }
  }
  return request;
}

NodeRoom RoomOf(const Node& node, const Resources& free, const DeviceUse& taken,
                const std::vector<std::string>& models) {
  std::vector<int16_t> left;
  int32_t model = -1;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    if (device.kind != kSharedKind || Unusable(node, i)) continue;
    if (left.empty()) model = IndexIn(models, device.model);
    if (left.size() < kMaxRoomDevices) left.push_back(static_cast<int16_t>(taken.FreeOf(i)));
  }
  NodeRoom room = RoomOf(std::clamp<int64_t>(free[kCpu], 0, kMaxRoomCpuMillis), model, left);
  room.memory_mib = MibOf(free[kMemory]);
  return room;
}

DemandWatch::DemandWatch(const RequestMix& known) : models_(known.models) {
  for (const RequestType& type : known.types) {
    const Request request = Uncounted(type.request, known.mib_per_core);
    for (int64_t i = std::min(type.weight, kMixMemory); i > 0; --i) learner_.Observe(request);
  }
}

void DemandWatch::Learn(const std::vector<std::string>& models) {
  for (const std::string& model : models) {
    const bool room = models_.size() < kMaxMixModels;
    if (room && IndexIn(models_, model) < 0) models_.push_back(model);
  }
}

void DemandWatch::Observe(const TaskShape& shape, int64_t tasks) {
  for (const DeviceRequest& one : shape.devices) {
    if (one.kind == kSharedKind) Learn(one.models);
  }
  const Request request = RequestOf(shape, models_);
  for (int64_t i = std::min(tasks, kMostAtOnce); i > 0; --i) learner_.Observe(request);
}

std::vector<NodeRoom> DemandWatch::EmptyRooms(const ClusterState& state) const {
  std::vector<NodeRoom> rooms;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    if (node.status.state != NodeState::kReady) return;
    rooms.push_back(RoomOf(node, node.capacity, {}, models_));
  });
  return rooms;
}

DeviceDemand DemandWatch::Give(const ClusterState& state) {
  return {.mix = learner_.Give(models_), .rooms = EmptyRooms(state)};
}

}  // namespace berth
