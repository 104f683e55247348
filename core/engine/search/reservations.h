// Reservations as a search for places sees them: what a node, or a queue, must still have when a
// reserved job starts.
//
// A task takes its place for a window of time. It may use what a reservation claims only if it ends
// before the reservation starts. Amounts (cpu, memory) must suffice, at each start of a reservation
// in the window, for what still runs then, the claims, and the task:
//
//   node of 8 cpus   now: A 4 until 10:00, B 2 forever      reserved from 10:00: 5
//   a job of 1 cpu fits forever (2 + 5 + 1 = 8); one of 2 only if it ends by 10:00
//
// Devices that are interchangeable for the reserved task are counted like amounts. For a picky task
// (by uuid, or by model on a mixed node), its exact devices are reserved. If both kinds meet on one
// node, the counted ones may find too few devices left, and move.
//
// Use falls only at ends and rises only at starts, so no other moments need checking. A job's own
// reservation never blocks it. An overdue reservation (its start has passed, the job is still
// pending) claims from now on.
#ifndef BERTH_CORE_ENGINE_SEARCH_RESERVATIONS_H_
#define BERTH_CORE_ENGINE_SEARCH_RESERVATIONS_H_

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

// How long tasks of the job that start at `begin` would hold their places: the walltime of a gang
// that starts then, or the rest of the running gang's.
Window WindowFrom(const Job& job, Time begin);

// Only queues with bounds need counting.
bool HasBounds(const Queue& queue);

// What a queue must give, or has left.
struct QueueUse {
  Resources all;
  Resources nonpreemptible;
  int64_t running_jobs = 0;

  QueueUse& operator+=(const QueueUse& other);
  QueueUse& operator-=(const QueueUse& other);
};
// `preemptible`: the part of the request of groups that may be stopped although the job may not.
QueueUse UseOf(const Job& job, const Resources& request, bool starts,
               const Resources& preemptible = {});

// A reservation that needs what is left of a queue's bounds.
struct QueueBar {
  JobId job;
  QueueId queue;
};

// For one cycle. Follows the state: rebuilds its index when reservations were decided or undone.
// Not thread-safe.
class Reservations {
 public:
  Reservations(const ClusterState& state, const Transaction& transaction, Time now);

  bool any() const { return !state_.reservations().empty(); }

  // Subtracts from the node's offer what is reserved there for other jobs; `window` is when the job
  // would run there. Returns the first job, by id, with such a reservation, or nullopt.
  std::optional<JobId> Withhold(const Node& node, const Job& job, const Window& window,
                                Resources* free, DeviceUse* used);

  // The first job, by id, with a reservation there that Withhold would subtract.
  std::optional<JobId> FirstOn(NodeId node, const Job& job, const Window& window);
  // State and reservations are those of this version (Transaction::version).
  uint64_t version() const { return transaction_.version(); }

  // Whether `use` more, for `window`, stays within the bounds of the queue and its ancestors at
  // every start of another's reservation in the window, counting these reservations. nullopt if it
  // does; otherwise the reservation in the way. `ended`: what the job's queue chain has released by
  // window.begin, from the leaf upward; empty if that is now.
  std::optional<QueueBar> Outgrows(const Job& job, const QueueUse& use, const Window& window,
                                   const std::vector<QueueUse>& ended);

  // The same at window.begin alone, ignoring reservations.
  bool WithinBoundsAfter(const Job& job, const QueueUse& use,
                         const std::vector<QueueUse>& ended) const;

  // Whether the request, for `window`, takes nothing of what is set aside for the guarantees of
  // other queues (GuaranteeVerdictAfter) at any start of another's reservation in the window. If
  // `gone_at_begin` says how much each queue has released by then, also at window.begin. These
  // reservations count as use of their queues. nullopt if it takes nothing; otherwise the
  // reservation in the way, which at window.begin is the job's own. `once_released`: what is being
  // released is gone at window.begin; later it is gone anyway. O(queues) per moment.
  using GoneByQueue = std::map<QueueId, Resources>;
  std::optional<QueueBar> TakesGuarantee(const Job& job, const Resources& request,
                                         const Window& window, bool once_released,
                                         const GoneByQueue* gone_at_begin = nullptr);
  // Some queue has a guarantee.
  bool AnyGuarantee();

  // Tasks placed in this cycle were decided to start, and end at `end`.
  void Started(const Job& job, const QueueUse& use, Time end);

  // When it holds its places, by the current state.
  Window WindowOf(const Reservation& reservation) const;

 private:
  struct Claim {  // of one reservation on one node
    JobId job;
    Window window;
    DeviceUse devices;  // of picky tasks
    Resources amounts;
  };
  using EndedUse = std::map<QueueId, QueueUse>;

  void Follow();  // drops what is outdated
  void Index();
  bool TaskGoneBy(Time at, TaskKey key, const Job& asking) const;
  Resources RunningAt(const Node& node, const Job& job, Time at) const;
  // The same for devices.
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
  uint64_t seen_ = 0;  // Transaction::reservation_version
  bool indexed_ = false;
  std::optional<bool> any_guarantee_;                       // queues do not change within a cycle
  absl::flat_hash_map<NodeId, std::vector<Claim>> claims_;  // by job within a node
  std::map<JobId, QueueUse> uses_;                          // for each reservation
  absl::btree_map<Time, EndedUse> ended_;  // by start: of the jobs that end by then
};

// The queue is `below` or an ancestor of it.
bool IsAbove(const ClusterState& state, QueueId queue, QueueId below);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_RESERVATIONS_H_
