// Which of a plan's units may stay where they are after all, now that the gang has its places.
#ifndef BERTH_CORE_ENGINE_VICTIMS_PUT_BACK_H_
#define BERTH_CORE_ENGINE_VICTIMS_PUT_BACK_H_

#include "absl/container/flat_hash_map.h"
#include "core/engine/shares/queue_bounds.h"
#include "core/engine/victims/victim_units.h"
#include "core/model/cluster_state.h"

namespace berth {

// What the restored units use, on top of the state.
class PutBack {
 public:
  // `job`: whose gang it is.
  PutBack(Cycle& cycle, const QueueBounds& bounds, const Job& job)
      : cycle_(cycle), state_(cycle.state()), job_(job), room_(cycle.state(), bounds) {}

  // Restores the unit if all its places are still free, it breaks no bound of the gang, and
  // affinity does not separate it from the gang. Returns whether it did.
  bool Try(const VictimUnit& unit);

 private:
  struct Taken {
    Resources amounts;
    DeviceUse devices;
  };

  const ShapeEntry& ShapeOf(const Job& job, uint32_t task) const {
    return state_.interner().Shape(job.groups[GroupOf(job, task)].shape);
  }
  bool Fits(const Job& job, const VictimUnit& unit) const;
  void Take(const Job& job, const VictimUnit& unit, uint32_t index);
  bool KeepsAway(const Job& job, const VictimUnit& unit) const;

  Cycle& cycle_;
  const ClusterState& state_;
  const Job& job_;
  QueueRoom room_;
  absl::flat_hash_map<NodeId, Taken> taken_;  // looked up only
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_PUT_BACK_H_
