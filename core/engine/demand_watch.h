// DemandWatch: which requests for devices have come so far, as the sharing policies count them, and
// when it is time to tell planning (RequestMixChanged). What it is fed decides what it gives; it is
// no part of the state, and its mixes are recorded as they are given out.
#ifndef BERTH_CORE_ENGINE_DEMAND_WATCH_H_
#define BERTH_CORE_ENGINE_DEMAND_WATCH_H_

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

// The kind of devices of which sharing policies think.
inline constexpr absl::string_view kSharedKind = "gpu";

// What the shape asks of that kind. If some model is not among `models`, any is taken to do, and
// filters tell.
Request RequestOf(const TaskShape& shape, const std::vector<std::string>& models);

// What the node has free of the shared kind, or would have if nothing ran there. `free`: CPU and
// memory.
NodeRoom RoomOf(const Node& node, const Resources& free, const DeviceUse& taken,
                const std::vector<std::string>& models);

class DemandWatch {
 public:
  DemandWatch() = default;
  // Goes on from what was known. Of memory and CPU only what was counted is: it stays the one that
  // counts until what comes says otherwise.
  explicit DemandWatch(const RequestMix& known);

  // So many tasks of the shape have come.
  void Observe(const TaskShape& shape, int64_t tasks);
  bool Due() const { return learner_.Due(); }
  // Without values, as it came, and the ready nodes, by id, as if nothing ran there
  // (core/sharing/host_resource.h). The next one is due later.
  DeviceDemand Give(const ClusterState& state);

 private:
  void Learn(const std::vector<std::string>& models);
  std::vector<NodeRoom> EmptyRooms(const ClusterState& state) const;

  std::vector<std::string> models_;  // at most kMaxMixModels; grows at the end
  MixLearner learner_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DEMAND_WATCH_H_
