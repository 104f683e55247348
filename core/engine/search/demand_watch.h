// DemandWatch: counts the requests for devices so far, in the units of the sharing policies, and
// decides when planning gets a new mix (RequestMixChanged). Its output depends only on its input.
// It is not part of the state; its mixes are recorded when they are given out.
#ifndef BERTH_CORE_ENGINE_SEARCH_DEMAND_WATCH_H_
#define BERTH_CORE_ENGINE_SEARCH_DEMAND_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/cluster_state.h"
#include "core/sharing/host_resource.h"
#include "core/sharing/mix_learner.h"
#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"

namespace berth {

// The kind of devices that sharing policies consider.
inline constexpr absl::string_view kSharedKind = "gpu";

// The shape's request for that kind. If one of its models is not in `models`, any model is assumed
// to match, and filters decide.
Request RequestOf(const TaskShape& shape, const std::vector<std::string>& models);

// The node's free room of the shared kind, or its room when empty. `free`: CPU and memory.
NodeRoom RoomOf(const Node& node, const Resources& free, const DeviceUse& taken,
                const std::vector<std::string>& models);

class DemandWatch {
 public:
  DemandWatch() = default;
  // Continues from what was known. Only the counted one of memory and CPU is known; it stays the
  // counted one until new requests change that.
  explicit DemandWatch(const RequestMix& known);

  // Records the arrival of that many tasks of the shape.
  void Observe(const TaskShape& shape, int64_t tasks);
  bool Due() const { return learner_.Due(); }
  // The mix without values, and the ready nodes by id as if they were empty
  // (core/sharing/host_resource.h). Restarts the count for the next one.
  DeviceDemand Give(const ClusterState& state);

 private:
  void Learn(const std::vector<std::string>& models);
  std::vector<NodeRoom> EmptyRooms(const ClusterState& state) const;

  std::vector<std::string> models_;  // at most kMaxMixModels; grows at the end
  MixLearner learner_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_DEMAND_WATCH_H_
