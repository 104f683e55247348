// QueueBounds: how much the queues above a job may hold with it.
//
// At most their limit. Where others are stopped for it, also at most their fair share, or what they
// hold where that is more: a queue may borrow what is idle beyond its share, but nobody is stopped
// so that it borrows more. The owner would take that back at once, the job would have stopped
// others in vain, and the two would take turns for ever.
//
//   a: deserves 10, holds 9 (priority 1), wants 12 (priority 2); b: deserves 6, wants 6; 7 are free
//   preempting the 9 for the 12 would make a hold 12 > 10, and b take all 12 back
#ifndef BERTH_CORE_ENGINE_QUEUE_BOUNDS_H_
#define BERTH_CORE_ENGINE_QUEUE_BOUNDS_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/engine/cycle.h"
#include "core/model/cluster_state.h"

namespace berth {

struct QueueBound {
  QueueId queue;
  Resources most;
};

// Of a leaf and those above it, the leaf first, the root last.
using QueueBounds = absl::InlinedVector<QueueBound, 4>;

// What the queues above the job may come to hold beyond their fair share, while others are stopped
// or moved for the job.
enum class Borrowing : uint8_t {
  kNothing,
  // What is idle in the amount that the job asks for, and what comes along with what a queue
  // deserves (queue_claim.h): nobody gives that up for the job.
  kIdle,
  kAnything,  // nobody is stopped: victims only move, and the job takes idle room
};

// As the state is now: what is being released is no longer held. O(depth).
QueueBounds BoundsAbove(Cycle& cycle, QueueId leaf, const Resources& request, Borrowing borrowing);
// The limits alone: for who only waits until others are gone.
QueueBounds LimitsAbove(const ClusterState& state, QueueId leaf);

// What is left below each bound. Others' jobs count where a bounded queue is above them, too.
class QueueRoom {
 public:
  // As the state is now.
  QueueRoom(const ClusterState& state, const QueueBounds& bounds);

  // In what it asks for.
  bool Fits(QueueId leaf, const Resources& request) const;
  void Take(QueueId leaf, const Resources& request);
  void Give(QueueId leaf, const Resources& request);

 private:
  bool Covers(QueueId above, QueueId leaf) const;

  const ClusterState& state_;
  absl::InlinedVector<std::pair<QueueId, Resources>, 4> rooms_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_QUEUE_BOUNDS_H_
