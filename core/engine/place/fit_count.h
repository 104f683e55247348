// FitCount: how many tasks of a gang would have room if some running tasks were gone, counted per
// node without touching the state. If it says no, there is no room. If it says yes, the plan must
// still be tried, because the count treats each shape separately and ignores affinity and
// reservations.
//
//   gang of 2 tasks of 8 GPUs      n1: 8 one-GPU jobs   n2: 4 free, 4 one-GPU jobs
//   Take(4 jobs of n2) -> 1 of 2;   Take(7 of n1) -> 1 of 2;   Take(the 8th) -> Enough()
#ifndef BERTH_CORE_ENGINE_PLACE_FIT_COUNT_H_
#define BERTH_CORE_ENGINE_PLACE_FIT_COUNT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/engine/cycle.h"
#include "core/engine/shares/queue_bounds.h"
#include "core/topology/domain_bound.h"

namespace berth {

// What a request would exceed of the queues' bounds: nothing; only fair shares, which are below the
// limits; or limits.
enum class QueuesShort : uint8_t { kNone, kShares, kLimits };
QueuesShort ShortOf(const ClusterState& state, const QueueBounds& bounds, const Resources& request);

// Counts as free at first: what is free, and what is being released, except by the job itself,
// whose tasks would be pending and placed too. The state must not change while it is used. Visits
// only nodes with room, and stops when there is enough.
class FitCount {
 public:
  // `bounds`: of the job's queues. `only`: the domain that must hold the job's whole scope
  // (WholeScopeOf).
  FitCount(Cycle& cycle, const Job& job, const JobNeeds& needs, const QueueBounds& bounds,
           std::optional<DomainIndex> only = std::nullopt);

  // There is room for all tasks on nodes, in domains that the job's topology allows, and within the
  // bounds of its queues.
  bool Enough() const { return short_shapes_ == 0 && short_levels_ == 0 && bound_.Enough(); }
  // Everything suffices except the fair shares: the limits alone would allow it.
  bool OnlySharesShort() const;

  // Counts these tasks of the job as gone, or as there again.
  void Take(JobId job, absl::Span<const uint32_t> tasks) { Change(job, tasks, 1); }
  void Return(JobId job, absl::Span<const uint32_t> tasks) { Change(job, tasks, -1); }

  // Nodes where something is being released and any task would have room, by the count: ascending.
  std::vector<NodeId> RoomOnceReleased() const;
  // Also counts releases that were not needed to have enough.
  void CountAllReleased();

 private:
  struct Shape {
    ShapeId id;
    int64_t needed = 0;
    int64_t fits = 0;
  };
  struct AtNode {
    NodeId id;
    Resources left;  // amounts; may be negative if others wait for what is being released
    DeviceUse used;
    int64_t gone = 0;                      // tasks that leave
    absl::InlinedVector<int64_t, 2> fits;  // by shape
  };
  struct Level {  // of the job's queue and its ancestors
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
  void Change(JobId id, absl::Span<const uint32_t> tasks, int sign);
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

#endif  // BERTH_CORE_ENGINE_PLACE_FIT_COUNT_H_
