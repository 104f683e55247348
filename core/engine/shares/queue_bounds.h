// QueueBounds: how much the queues above a job may hold with it.
//
// At most their limit. If other jobs are evicted for it, also at most their fair share, or what
// they hold if that is more: a queue may borrow idle resources beyond its share, but no job is
// evicted so that it borrows more. The owner would take the resources back at once, the evictions
// would be wasted, and the two queues would alternate forever.
//
//   a: deserves 10, holds 9 (priority 1), wants 12 (priority 2); b: deserves 6, wants 6; 7 are free
//   preempting the 9 for the 12 would make a hold 12 > 10, and b take all 12 back
#ifndef BERTH_CORE_ENGINE_SHARES_QUEUE_BOUNDS_H_
#define BERTH_CORE_ENGINE_SHARES_QUEUE_BOUNDS_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/engine/cycle.h"
#include "core/model/cluster_state.h"

namespace berth {

struct QueueBound {
  QueueId queue;
  Resources most;
};

// For a leaf and its ancestors; the leaf first, the root last.
using QueueBounds = absl::InlinedVector<QueueBound, 4>;

// What the queues above the job may hold beyond their fair share, when others are evicted or moved
// for the job.
enum class Borrowing : uint8_t {
  kNothing,
  // Idle resources among those that the job requests, and those that come along with what a queue
  // deserves (queue_claim.h): no job gives them up.
  kIdle,
  kAnything,  // nothing is evicted: victims only move, and the job takes idle room
};

// For the current state: what is being released no longer counts as held. O(depth).
QueueBounds BoundsAbove(Cycle& cycle, QueueId leaf, const Resources& request, Borrowing borrowing);
// The limits alone, for jobs that only wait until others are gone.
QueueBounds LimitsAbove(const ClusterState& state, QueueId leaf);

// The room below each bound. Also counts jobs of other queues below a bounded queue.
class QueueRoom {
 public:
  // From the current state.
  QueueRoom(const ClusterState& state, const QueueBounds& bounds);

  // Checks only the resources that are requested.
  bool Fits(QueueId leaf, const Resources& request) const;
  void Take(QueueId leaf, const Resources& request);
  void Give(QueueId leaf, const Resources& request);

 private:
  bool Covers(QueueId above, QueueId leaf) const;

  const ClusterState& state_;
  absl::InlinedVector<std::pair<QueueId, Resources>, 4> rooms_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SHARES_QUEUE_BOUNDS_H_
