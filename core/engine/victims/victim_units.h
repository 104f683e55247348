// What may be taken from running jobs, unit by unit, and in which order.
//
// A unit goes together: a surplus task of an elastic job (of a partitioned group: a surplus
// partition), highest index first, those protected from reclaim last; after these, the rest of the
// job, which is a whole gang. So a gang is never left below its minimum.
//
// May be taken: placed tasks of preemptible jobs that have no task nominated, being released or on
// a silent node, that are not being frozen, and that are not protected by their age:
//   min_runtime   since the gang began to run;
//   cooldown      since the gang, or the task, was placed again after an earlier attempt, so that a
//                 recent victim can run for a while.
//
// Not: whole gangs of a queue with surplus_only (QueueSpec, its own or an ancestor's), or of a job
// that is not preemptible; of such a job only surplus of preemptible groups.
//
// Not: what was bound at this very time, possibly by this cycle, because evicting it would undo the
// cycle's own work. Such a surplus task stays with the rest, which then stays as well.
//
// The loss of a unit is the wasted work of its devices: device-seconds since the last checkpoint
// that was reported. Without reports, since each task's start if the job writes no checkpoints. If
// it says that it writes some (checkpoint_interval), but reports none, it is charged what a job
// that reports would lose now: the median over those that run (for what a promise is worth, see
// Kueue issue 477). If no job reports, its interval counts.
#ifndef BERTH_CORE_ENGINE_VICTIMS_VICTIM_UNITS_H_
#define BERTH_CORE_ENGINE_VICTIMS_VICTIM_UNITS_H_

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
  bool rest = false;                       // everything beyond the job's surplus units
  bool must_move = false;                  // may not be stopped: the plan finds it another place
  bool frozen = false;                     // all its tasks, and none of them waits for its CPU
  int32_t priority = 0;                    // the job's; for surplus its group's (PriorityOf)
  int64_t loss = 0;                        // device-seconds, in thousandths
  absl::InlinedVector<uint32_t, 1> tasks;  // ascending, never empty
};

// Seconds of work that the task would lose now: since its latest reported checkpoint; without
// reports since its start, or since the latest multiple of its job's checkpoint_interval.
int64_t SecondsLost(const Job& job, uint32_t task, Time now);

// When the unit is expected to have saved its work next, by the rhythm of its job's reports and its
// checkpoint_interval, a tenth of it late. InfinitePast unless that is within `patience` and less
// time than it would lose now.
Time SavesSoon(const Job& job, const VictimUnit& unit, Time now, Duration patience);

// What the tasks of the unit hold together.
Resources RequestOf(const ClusterState& state, const VictimUnit& unit);

// The greatest priority (PriorityOf) of these surplus tasks.
int32_t GreatestPriority(const Job& job, const std::vector<uint32_t>& tasks);

// Some of it was reclaimed for the job (Task::claimed).
bool HoldsClaims(const ClusterState& state, const VictimUnit& unit);
// The part of it that was reclaimed.
Resources ClaimedOf(const ClusterState& state, const VictimUnit& unit);

// Whether taking units of that job helps; null: of any job.
using UsefulJob = std::function<bool(const Job& job)>;

// Hands out units one after the other: each time the next one that may go if all before it are
// gone.
class VictimSource {
 public:
  virtual ~VictimSource() = default;
  virtual std::optional<VictimUnit> Next() = 0;
  // Before the first: whether a unit of the job, if it has any, might be handed out. May be too
  // optimistic, because earlier units affect it; never too pessimistic.
  virtual bool CouldGive(const Job& job) const = 0;
  // The same for one unit of such a job.
  virtual bool CouldGive(const VictimUnit&) const { return true; }
  // When the age protection of a skipped unit ends; InfiniteFuture if none was skipped.
  virtual Time protected_until() const = 0;
};

// The queue or an ancestor has surplus_only: it gives up no whole gangs.
bool SurplusOnlyAbove(const ClusterState& state, QueueId queue);

// Whether the job's tasks may be stopped for others, whatever their age.
bool MayGo(const Job& job);

// Makes units of jobs from the state at each call. Remembers which jobs were protected.
class UnitMaker {
 public:
  UnitMaker(const ClusterState& state, const EvictionParameters& parameters, Time now)
      : state_(state), parameters_(parameters), now_(now) {}

  // Appends the job's units, surplus first.
  void AddUnitsOf(const Job& job, std::vector<VictimUnit>* units);
  // The earliest end of protection since the last call; InfiniteFuture if no job was protected.
  Time TakeProtectedUntil() { return std::exchange(protected_until_, absl::InfiniteFuture()); }

 private:
  bool Protected(Time until);
  bool JustBound(const Task& task);
  struct Spare;
  void AddSurplus(const Job& job, std::vector<VictimUnit>* units);
  void AddSurplus(const Job& job, bool claimed, Spare& spare, std::vector<VictimUnit>* units);
  VictimUnit UnitOf(const Job& job, bool rest, absl::InlinedVector<uint32_t, 1> tasks);
  int64_t Charge(const Job& job, uint32_t task);
  std::optional<int64_t> MedianOfReporters() const;

  const ClusterState& state_;
  const EvictionParameters& parameters_;
  const Time now_;
  Time protected_until_ = absl::InfiniteFuture();
  std::optional<std::optional<int64_t>> median_;  // of reporters; computed on first use
};

// Units in the order in which they may go, for many consecutive plans. A job from which a plan took
// a unit gives no more to later plans. It is skipped for good once all units before it are gone.
class UnitList {
 public:
  explicit UnitList(std::vector<VictimUnit> units) : units_(std::move(units)) {}
  // The next unit that may still go, starting at `*at` (at first 0), which is moved behind it; null
  // if none.
  const VictimUnit* Next(const ClusterState& state, size_t* at);

 private:
  std::vector<VictimUnit> units_;
  size_t first_ = 0;  // all units before it are gone
};

// Shared by the plans of one action's run: each queue's own jobs are read and sorted once, however
// many plans take from them. Only the action itself may change what these jobs hold.
class UnitPool {
 public:
  explicit UnitPool(Cycle& cycle);

  // Units of the queue's own jobs with one priority: surplus before whole gangs, then least loss,
  // later deadline, younger.
  struct Band {
    int64_t priority = 0;
    UnitList units;
    Time protected_until;
  };
  // By priority, lowest first; null if there are fewer bands.
  Band* Find(QueueId queue, size_t band);

 private:
  struct OfQueue {
    std::vector<std::unique_ptr<Band>> bands;  // those built so far
    std::optional<OrderKey> looked_from;       // the first key of the last of them
    // Surplus with a priority below its job's that is in no band yet; by priority.
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
// lowest priority first. Reads one priority at a time, when it is needed.
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
  UnitPool::Band* band_ = nullptr;  // the current one
  size_t bands_ = 0;                // read so far
  size_t next_ = 0;                 // in the current one
  Time protected_until_ = absl::InfiniteFuture();
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_VICTIM_UNITS_H_
