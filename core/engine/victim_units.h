// What may be taken from running jobs, piece by piece, and in which order.
//
// A unit is what goes together: a surplus task of an elastic job (of a partitioned group: a surplus
// partition), highest index first; and, after all of these, the rest of the job, which is a whole
// gang. So a gang is never left below its minimum.
//
// May be taken: tasks of preemptible jobs that are placed, of which nothing is nominated, being
// released or on a silent node, and that are not protected for their age:
//   min_runtime   since the gang began to run;
//   cooldown      since the gang, or the task, was placed again after an earlier attempt: a victim
//                 of yesterday may then run a while in peace.
//
// The loss of a unit is what its devices did in vain: device-seconds since each task's start, or
// since the last checkpoint if the job makes any (at every multiple of its interval).
#ifndef BERTH_CORE_ENGINE_VICTIM_UNITS_H_
#define BERTH_CORE_ENGINE_VICTIM_UNITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

struct VictimUnit {
  JobId job;
  bool rest = false;                       // all that the job holds beyond its surplus units
  int64_t loss = 0;                        // device-seconds
  absl::InlinedVector<uint32_t, 1> tasks;  // ascending, never empty
};

// What the units of a job hold together.
Resources RequestOf(const ClusterState& state, const VictimUnit& unit);

// Whether anything is gained by taking of that job; null: of any.
using UsefulJob = std::function<bool(const Job& job)>;

// Hands out units one after the other: the next one that may go, all before it taken as gone.
class VictimSource {
 public:
  virtual ~VictimSource() = default;
  virtual std::optional<VictimUnit> Next() = 0;
  // When a unit that was passed over for its age may be taken; InfiniteFuture if there was none.
  virtual Time protected_until() const = 0;
};

// Makes units of jobs, as the state is at each call. Remembers who was protected.
class UnitMaker {
 public:
  UnitMaker(const ClusterState& state, const EvictionParameters& parameters, Time now,
            UsefulJob useful = nullptr)
      : state_(state), parameters_(parameters), now_(now), useful_(std::move(useful)) {}

  // Appends the job's units, surplus first.
  void AddUnitsOf(const Job& job, std::vector<VictimUnit>* units);
  Time protected_until() const { return protected_until_; }

 private:
  bool Protected(Time until);
  bool MayGo(const Job& job) const;
  void AddSurplus(const Job& job, std::vector<VictimUnit>* units);
  VictimUnit UnitOf(const Job& job, bool rest, absl::InlinedVector<uint32_t, 1> tasks) const;

  const ClusterState& state_;
  const EvictionParameters& parameters_;
  const Time now_;
  const UsefulJob useful_;
  Time protected_until_ = absl::InfiniteFuture();
};

// The units of one queue's own jobs with a priority below `bound`, except the job `besides`: lowest
// priority first; of equal priority surplus before whole gangs, then least loss, later deadline,
// younger. Looks at one priority at a time, when it is needed.
class QueueVictims final : public VictimSource {
 public:
  QueueVictims(const ClusterState& state, const EvictionParameters& parameters, Time now,
               QueueId queue, JobId besides, int64_t bound, UsefulJob useful = nullptr);

  std::optional<VictimUnit> Next() override;
  Time protected_until() const override { return maker_.protected_until(); }

 private:
  bool NextPriority();

  const ClusterState& state_;
  UnitMaker maker_;
  const QueueId queue_;
  const JobId besides_;
  const int64_t bound_;
  std::vector<VictimUnit> units_;        // of the present priority, in order
  size_t next_ = 0;                      // in units_
  std::optional<OrderKey> looked_from_;  // the first key of the present priority
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIM_UNITS_H_
