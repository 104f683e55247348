// Reservations as a search for places sees them: what a node, or a queue, must still have to give
// when a reserved job starts.
//
// Whoever takes a place takes it for a window of time. It may use what a reservation claims only if
// it is gone before the reservation starts; and amounts that are not told apart (cpu, memory) must
// suffice, at each start of a reservation in its window, for what still runs then, the claims, and
// itself:
//
//   node of 8 cpus   now: A 4 until 10:00, B 2 for ever      reserved from 10:00: 5
//   a job of 1 cpu fits for ever (2 + 5 + 1 = 8); one of 2 only if it ends by 10:00
//
// Devices of a node that the reserved task's request does not tell apart are such amounts as well;
// of a picky one (by uuid, or by model on a mixed node), the very devices are kept. Where both
// kinds meet on one node, those that are only counted may find too few of theirs left, and move.
//
// Use falls at ends and rises at starts only, so these are all the moments to look at. A job's own
// reservation never bars it. One that is overdue (its start has passed, the job still waits) claims
// from now on.
#ifndef BERTH_CORE_ENGINE_RESERVATIONS_H_
#define BERTH_CORE_ENGINE_RESERVATIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "core/engine/transaction.h"
#include "core/model/cluster_state.h"

namespace berth {

// From `begin` until before `end`.
struct Window {
  Time begin = absl::InfinitePast();
  Time end = absl::InfiniteFuture();
  bool Holds(Time at) const { return begin <= at && at < end; }
  bool Overlaps(const Window& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Window&) const = default;
};

// What tasks of the job that were placed at `begin` would hold their places for: the walltime of a
// gang that starts then, or the rest of the running one's.
Window WindowFrom(const Job& job, Time begin);

// Of what it holds, some may be too much: else it need not be counted.
bool HasBounds(const Queue& queue);

// What a queue is asked for, or has left.
struct QueueUse {
  Resources all;
  Resources nonpreemptible;
  int64_t running_jobs = 0;

  QueueUse& operator+=(const QueueUse& other);
  QueueUse& operator-=(const QueueUse& other);
};
// `preemptible`: of the request, what groups ask for that may be stopped though the job may not.
QueueUse UseOf(const Job& job, const Resources& request, bool starts,
               const Resources& preemptible = {});

// Whose reservation needs what is left of the bounds of which queue.
struct QueueBar {
  JobId job;
  QueueId queue;
};

// For one cycle. Follows the state by itself: what it keeps is made anew when reservations were
// decided or undone. No thread safety.
class Reservations {
 public:
  Reservations(const ClusterState& state, const Transaction& transaction, Time now);

  bool any() const { return !state_.reservations().empty(); }

  // Takes out of what the node offers what is kept there for other jobs than this one; `window` is
  // when the job would be there. The first job by id for which something was kept, or nullopt.
  std::optional<JobId> Withhold(const Node& node, const Job& job, const Window& window,
                                Resources* free, DeviceUse* used);

  // `use` more, for `window`, stays within the bounds of the queue and those above it at every
  // start of another's reservation in the window, these reservations counted; nullopt if so, else
  // whose would be in the way. `ended`: what has gone by window.begin of the job's queue chain,
  // from the leaf upward; empty if that is now.
  std::optional<QueueBar> Outgrows(const Job& job, const QueueUse& use, const Window& window,
                                   const std::vector<QueueUse>& ended);

  // The same at window.begin alone, whatever is reserved.
  bool WithinBoundsAfter(const Job& job, const QueueUse& use,
                         const std::vector<QueueUse>& ended) const;

  // The request more, for `window`, takes nothing of what is set aside for the guarantees of other
  // queues (GuaranteeVerdictAfter) at any start of another's reservation in the window, nor, where
  // `gone_at_begin` says how much of each queue's use has gone by then, at window.begin; these
  // reservations counted as use of their queues. nullopt if so, else whose would be in the way: at
  // window.begin the job's own. `once_released`: at window.begin what is being released has gone;
  // later it has anyway. O(queues) for each moment.
  using GoneByQueue = std::map<QueueId, Resources>;
  std::optional<QueueBar> TakesGuarantee(const Job& job, const Resources& request,
                                         const Window& window, bool once_released,
                                         const GoneByQueue* gone_at_begin = nullptr);
  // Some queue has a guarantee.
  bool AnyGuarantee();

  // What was placed in this cycle was decided to start, and ends at `end`.
  void Started(const Job& job, const QueueUse& use, Time end);

  // When it holds its places, as things are now.
  Window WindowOf(const Reservation& reservation) const;

 private:
  struct Claim {  // of one reservation on one node
    JobId job;
    Window window;
    DeviceUse devices;  // of picky tasks
    Resources amounts;
  };
  using EndedUse = std::map<QueueId, QueueUse>;

  void Follow();  // forgets what is no longer so
  void Index();
  bool TaskGoneBy(Time at, TaskKey key, const Job& asking) const;
  Resources RunningAt(const Node& node, const Job& job, Time at) const;
  // The same of devices.
  DeviceUse DevicesAt(const Node& node, const std::vector<Claim>& claims, const Job& job,
                      Time at) const;
  Resources ClaimedAt(const std::vector<Claim>& claims, const Job& job, Time at) const;
  const EndedUse& EndedBy(Time at);
  GoneByQueue GoneBy(Time at, bool once_released);
  void AddClaims(const Job& job, Time at, GoneByQueue* gone) const;
  QueueUse ClaimOf(const Job& job, const Reservation& reservation) const;
  QueueUse ClaimsBelow(QueueId queue, JobId except, Time at) const;

  const ClusterState& state_;
  const Transaction& transaction_;
  const Time now_;
  uint64_t version_ = 0;
  bool indexed_ = false;
  std::optional<bool> any_guarantee_;                       // queues do not change within a cycle
  absl::flat_hash_map<NodeId, std::vector<Claim>> claims_;  // by job within a node
  std::map<JobId, QueueUse> uses_;                          // each reservation's
  absl::btree_map<Time, EndedUse> ended_;  // by a start: of the jobs that end by then
};

// The queue is `below` or above it.
bool IsAbove(const ClusterState& state, QueueId queue, QueueId below);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_RESERVATIONS_H_
