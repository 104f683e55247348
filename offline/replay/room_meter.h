// Measures over time how much of the free GPUs no request of the workload can use: the
// fragmentation of core/sharing/fragmentation.h, summed over the ready nodes.
//
// The mix consists of the tasks of the workload that request GPUs: CPU-only tasks cannot use a GPU
// in any cluster. As in the original, it ignores memory.
#ifndef BERTH_OFFLINE_REPLAY_ROOM_METER_H_
#define BERTH_OFFLINE_REPLAY_ROOM_METER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/cluster_state.h"
#include "core/sharing/fragmentation.h"
#include "offline/replay/workload.h"

namespace berth::replay {

class FragmentationMeter {
 public:
  explicit FragmentationMeter(const Workload& workload);

  // Call if the allocation or the readiness of the node may have changed.
  void Look(const Node& node);
  void Pass(double seconds);

  // Present GPUs. `capacity` is of all ready GPUs, free or not. 0 if no GPU is requested.
  double capacity() const;
  double free() const;
  double unusable() const;
  // The unusable part of the free GPUs over time; nullopt if no GPU was ever free, or none is
  // requested.
  std::optional<double> Fragmentation() const;

 private:
  struct Part {
    int64_t free = 0;      // thousandths of a GPU
    int64_t unusable = 0;  // millionths of one
    int64_t devices = 0;
  };
  Part PartOf(const Node& node);

  std::vector<std::string> models_;
  std::optional<berth::Fragmentation> fragmentation_;  // nullopt: no GPU is requested
  std::vector<Part> parts_;                            // by node id
  absl::flat_hash_map<NodeRoom, int64_t> known_;       // never iterated
  Part now_;
  double free_seconds_ = 0, unusable_seconds_ = 0;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_ROOM_METER_H_
