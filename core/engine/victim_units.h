// What may be taken from running jobs, piece by piece, and in which order.
//
// A unit is what goes together: a surplus task of an elastic job (of a partitioned group: a surplus
// partition), highest index first, but of those that others may not reclaim last; and, after all of
// these, the rest of the job, which is a whole gang. So a gang is never left below its minimum.
//
// May be taken: tasks of preemptible jobs that are placed, of which nothing is nominated, being
// released or on a silent node, and that are not protected for their age:
//   min_runtime   since the gang began to run;
//   cooldown      since the gang, or the task, was placed again after an earlier attempt: a victim
//                 of yesterday may then run a while in peace.
//
// No whole gang of a queue that gives surplus only (QueueSpec::surplus_only, of it or one above),
// nor of a job that is not preemptible: of that only surplus of groups that are.
//
// And nothing that was bound at this very time, so maybe by this cycle, whatever these are: to stop
// it would make the cycle's own work vain. A surplus task that was stays with the rest, which then
// stays as well.
//
// The loss of a unit is what its devices did in vain: device-seconds since each task's start, or
// since the last checkpoint if the job makes any (at every multiple of its interval).
#ifndef BERTH_CORE_ENGINE_VICTIM_UNITS_H_
#define BERTH_CORE_ENGINE_VICTIM_UNITS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/engine/cycle.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

struct VictimUnit {
  JobId job;
  bool rest = false;                       // all that the job holds beyond its surplus units
  bool must_move = false;                  // may not be stopped: the plan finds it another place
  int32_t priority = 0;                    // the job's; of surplus its group's (PriorityOf)
  int64_t loss = 0;                        // device-seconds, in thousandths
  absl::InlinedVector<uint32_t, 1> tasks;  // ascending, never empty
};

// What the units of a job hold together.
Resources RequestOf(const ClusterState& state, const VictimUnit& unit);

// Of the priorities (PriorityOf) of these surplus tasks.
int32_t GreatestPriority(const Job& job, const std::vector<uint32_t>& tasks);

// Some of it was reclaimed for the job (Task::claimed).
bool HoldsClaims(const ClusterState& state, const VictimUnit& unit);
// What of it was.
Resources ClaimedOf(const ClusterState& state, const VictimUnit& unit);

// Whether anything is gained by taking of that job; null: of any.
using UsefulJob = std::function<bool(const Job& job)>;

// Hands out units one after the other: the next one that may go, all before it taken as gone.
class VictimSource {
 public:
  virtual ~VictimSource() = default;
  virtual std::optional<VictimUnit> Next() = 0;
  // Before the first: a unit of the job, if it has any, may be handed out at all. May be too
  // hopeful, as what was handed out before bears on it; never the other way round.
  virtual bool CouldGive(const Job& job) const = 0;
  // The same of one unit of such a job.
  virtual bool CouldGive(const VictimUnit&) const { return true; }
  // When a unit that was passed over for its age may be taken; InfiniteFuture if there was none.
  virtual Time protected_until() const = 0;
};

// The job's tasks may be stopped for others at all, whatever their age.
bool MayGo(const Job& job);

// Makes units of jobs, as the state is at each call. Remembers who was protected.
class UnitMaker {
 public:
  UnitMaker(const ClusterState& state, const EvictionParameters& parameters, Time now)
      : state_(state), parameters_(parameters), now_(now) {}

  // Appends the job's units, surplus first.
  void AddUnitsOf(const Job& job, std::vector<VictimUnit>* units);
  // Until when, since this was last asked; InfiniteFuture if nobody was.
  Time TakeProtectedUntil() { return std::exchange(protected_until_, absl::InfiniteFuture()); }

 private:
  bool Protected(Time until);
  bool JustBound(const Task& task);
  struct Spare;
  void AddSurplus(const Job& job, std::vector<VictimUnit>* units);
  void AddSurplus(const Job& job, bool claimed, Spare& spare, std::vector<VictimUnit>* units);
  VictimUnit UnitOf(const Job& job, bool rest, absl::InlinedVector<uint32_t, 1> tasks) const;

  const ClusterState& state_;
  const EvictionParameters& parameters_;
  const Time now_;
  Time protected_until_ = absl::InfiniteFuture();
};

// Units in the order in which they may go, for many plans one after the other. A job of which a
// plan took something gives no more to those after it: it is passed over, once where all before it
// have gone.
class UnitList {
 public:
  explicit UnitList(std::vector<VictimUnit> units) : units_(std::move(units)) {}
  // From `*at` (at first 0) on, the next that may still go, and `*at` behind it; null: none.
  const VictimUnit* Next(const ClusterState& state, size_t* at);

 private:
  std::vector<VictimUnit> units_;
  size_t first_ = 0;  // all before it have gone
};

// What the plans of one action's run share: each queue's own jobs are looked at, and put in order,
// once, however many plans take from them. Only decisions of the action itself may change what
// these jobs hold.
class UnitPool {
 public:
  explicit UnitPool(Cycle& cycle);

  // Of the queue's own jobs, what has one priority: surplus before whole gangs, then least loss,
  // later deadline, younger.
  struct Band {
    int64_t priority = 0;
    UnitList units;
    Time protected_until;
  };
  // By priority, lowest first; null: there are not so many.
  Band* Find(QueueId queue, size_t band);

 private:
  struct OfQueue {
    std::vector<std::unique_ptr<Band>> bands;  // those looked at
    std::optional<OrderKey> looked_from;       // the first key of the last of them
    // Surplus with a priority below its job's, where no band has it yet; by priority.
    struct Surplus {
      std::vector<VictimUnit> units;
      Time protected_until = absl::InfiniteFuture();
    };
    std::optional<std::map<int32_t, Surplus>> graded;
  };
  void ListGraded(QueueId queue, OfQueue* of);
  bool Extend(QueueId queue, OfQueue* of);

  Cycle& cycle_;
  const ClusterState& state_;
  UnitMaker maker_;
  absl::flat_hash_map<QueueId, OfQueue> queues_;  // looked up only
};

// The units of one queue's own jobs with a priority below `bound`, except of the job `besides`:
// lowest priority first. Looks at one priority at a time, when it is needed.
class QueueVictims final : public VictimSource {
 public:
  QueueVictims(UnitPool& pool, const ClusterState& state, QueueId queue, JobId besides,
               int64_t bound, UsefulJob useful = nullptr)
      : pool_(pool),
        state_(state),
        queue_(queue),
        besides_(besides),
        bound_(bound),
        useful_(std::move(useful)) {}

  std::optional<VictimUnit> Next() override;
  bool CouldGive(const Job& job) const override {
    return job.queue == queue_ && job.id != besides_ && LowestPriority(job) < bound_;
  }
  bool CouldGive(const VictimUnit& unit) const override { return unit.priority < bound_; }
  Time protected_until() const override { return protected_until_; }

 private:
  UnitPool& pool_;
  const ClusterState& state_;
  const QueueId queue_;
  const JobId besides_;
  const int64_t bound_;
  const UsefulJob useful_;
  UnitPool::Band* band_ = nullptr;  // the present one
  size_t bands_ = 0;                // looked at
  size_t next_ = 0;                 // in the present one
  Time protected_until_ = absl::InfiniteFuture();
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIM_UNITS_H_
