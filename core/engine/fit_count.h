// FitCount: for how many tasks of a gang there would be room if some running tasks were gone,
// counted node by node without touching the state. What it denies is impossible; what it grants
// must still be tried, as it looks at each shape alone and knows nothing of tasks that want to be
// near or apart, and of reservations.
//
//   gang of 2 tasks of 8 GPUs      n1: 8 one-GPU jobs   n2: 4 free, 4 one-GPU jobs
//   Take(4 jobs of n2) -> 1 of 2;   Take(7 of n1) -> 1 of 2;   Take(the 8th) -> Enough()
#ifndef BERTH_CORE_ENGINE_FIT_COUNT_H_
#define BERTH_CORE_ENGINE_FIT_COUNT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/engine/cycle.h"
#include "core/engine/queue_bounds.h"
#include "core/engine/victim_units.h"
#include "core/topology/domain_bound.h"

namespace berth {

// Free at first: what is free, and what will be once what is being released is gone; not of the job
// itself, as it would wait, and be placed in the others' stead. The state must not change while it
// is used. Looks only at nodes with room, and only until there is enough.
class FitCount {
 public:
  // `bounds`: of the job's queues. `only`: of the job's whole scope (WholeScopeOf), the domain that
  // must hold it.
  FitCount(Cycle& cycle, const Job& job, const JobNeeds& needs, const QueueBounds& bounds,
           std::optional<DomainIndex> only = std::nullopt);

  // Room for all on nodes, in domains that its topology allows, and within the bounds of the job's
  // queues.
  bool Enough() const { return short_shapes_ == 0 && short_levels_ == 0 && bound_.Enough(); }
  // All is enough but what fair shares bound: with the limits alone it would be.
  bool OnlySharesShort() const;

  void Take(const VictimUnit& unit) { Change(unit, 1); }
  void Return(const VictimUnit& unit) { Change(unit, -1); }

  // Where something is being released, and there would be room for any task, as counted: ascending.
  std::vector<NodeId> RoomOnceReleased() const;
  // Counts also what was not needed to have enough.
  void CountAllReleased();

 private:
  struct Shape {
    ShapeId id;
    int64_t needed = 0;
    int64_t fits = 0;
  };
  struct AtNode {
    NodeId id;
    Resources left;  // of amounts; may be negative where others wait for what is being released
    DeviceUse used;
    int64_t gone = 0;                      // of its tasks: those that leave
    absl::InlinedVector<int64_t, 2> fits;  // by shape
  };
  struct Level {  // of the job's queue chain
    QueueId queue;
    Resources room;         // beyond the request; negative = short
    Resources below_limit;  // from the bound up to the limit
    bool is_short = false;
  };

  void CountFree();
  void CountReleased(bool all);
  void LeaveOutOwn(const Job& job);
  AtNode* Touch(NodeId id);
  void Recount(AtNode& at);
  void Change(const VictimUnit& unit, int sign);
  void ChangeTask(const Task& task, const ShapeEntry& shape, int sign);
  void ChangeLevels(QueueId leaf, const Resources& request, int sign);

  Cycle& cycle_;
  const ClusterState& state_;
  absl::InlinedVector<Shape, 2> shapes_;
  std::vector<AtNode> touched_;
  absl::flat_hash_map<NodeId, uint32_t> slots_;  // index in touched_; looked up only
  absl::InlinedVector<Level, 4> levels_;
  Resources request_;
  DomainBound bound_;
  int short_shapes_ = 0;
  int short_levels_ = 0;
  bool limited_ = false;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_FIT_COUNT_H_
