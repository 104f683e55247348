// How much of the free GPUs is of no use to the requests of the workload, over time: the
// fragmentation of core/sharing/fragmentation.h, summed over the ready nodes.
//
// The mix is that of the workload's own tasks which ask for GPUs: tasks of CPU alone cannot use a
// GPU in any cluster. Memory is no part of it, as in the original.
#ifndef BERTH_CLIENTS_REPLAY_ROOM_METER_H_
#define BERTH_CLIENTS_REPLAY_ROOM_METER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clients/replay/workload.h"
#include "core/model/cluster_state.h"
#include "core/sharing/fragmentation.h"

namespace berth::replay {

class RoomMeter {
 public:
  explicit RoomMeter(const Workload& workload);

  // Something may have changed there: what is held, or whether it is ready.
  void Look(const Node& node);
  void Pass(double seconds);

  // GPUs, now. Of those that are ready the capacity is of all, free or not; 0 if none is asked for.
  double capacity() const;
  double free() const;
  double unusable() const;
  // The unusable part of what was free, over time; nullopt if no GPU was ever free, or none is
  // asked for.
  std::optional<double> Fragmentation() const;

 private:
  struct Part {
    int64_t free = 0;      // thousandths of a GPU
    int64_t unusable = 0;  // millionths of one
    int64_t devices = 0;
  };
  Part PartOf(const Node& node);

  std::vector<std::string> models_;
  std::optional<berth::Fragmentation> fragmentation_;  // nullopt: no GPU is asked for
  std::vector<Part> parts_;                            // by node id
  absl::flat_hash_map<NodeRoom, int64_t> known_;       // never walked through
  Part now_;
  double free_seconds_ = 0, unusable_seconds_ = 0;
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_ROOM_METER_H_
