// Explains why an action found no victims: who holds what a job lacks, and which protection keeps
// it from being evicted or moved. For people.
//
//   "queue b holds 4 gpu in jobs that are not preemptible"
//   "no job in queue a has a lower priority (lowest: 5)"
//
// Reports the protection that keeps most of the resource that the job lacks. Most of this follows
// from sums that the queues keep, so it costs O(queues). Jobs are checked only for age or priority:
// those of each queue once, and at most kMostLookedAt in total. Lives within one run of an action.
#ifndef BERTH_CORE_ENGINE_VICTIMS_PROTECTIONS_H_
#define BERTH_CORE_ENGINE_VICTIMS_PROTECTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/shares/queue_claim.h"
#include "core/engine/victims/victim_plan.h"

namespace berth {

class Protections {
 public:
  static constexpr int kMostLookedAt = 1000;

  explicit Protections(Cycle& cycle) : cycle_(cycle), state_(cycle.state()) {}

  // Each returns a complete explanation of a plan that was not decided. Reclaim: what other queues
  // hold. `spared`: what the plan itself reports about a queue, or empty.
  std::string OfOthers(const Job& job, const Resources& request, const VictimOutcome& outcome,
                       const std::string& spared);
  // Preempt: what jobs of the job's queue hold whose priority is less than `priority`.
  std::string OfQueue(const Job& job, const JobNeeds& needs, int32_t priority,
                      const VictimOutcome& outcome);
  // Consolidate: what all jobs hold.
  std::string OfAll(const Job& job, const JobNeeds& needs, const VictimOutcome& outcome);

 private:
  enum class Kind : uint8_t {  // for equal amounts the first is reported
    kNotReclaimable,
    kNotPreemptible,
    kSurplusOnly,
    kAge,
    kFairShare,
    kDeserved,
    kPriority
  };
  struct Holding {
    Kind kind = Kind::kNotReclaimable;
    const Queue* queue = nullptr;
    int64_t amount = 0;
    int64_t bound = 0;  // the share, what is deserved, or their lowest priority
  };
  // Jobs of one queue with a priority below some bound.
  struct Looked {
    bool complete = true;       // false: some jobs were not checked
    Resources held;             // of the held amount:
    Resources not_preemptible;  //
    Resources gangs;            // in queues with surplusOnly
    Resources aged;             //   protected by min_runtime or cooldown
    JobId first;                // the first of these to lose protection, and when
    Time until = absl::InfiniteFuture();
  };
  struct Search;

  Search SearchFor(const Job& job, const Resources& request, const VictimOutcome& outcome) const;
  const Looked& LookAt(const Queue& queue, int64_t below);
  void LookAt(const Job& job, bool surplus_only, Looked* looked);
  void AddHeldOf(const Queue& leaf, Search* search);
  void AddBelow(const Queue& queue, Search* search);
  void AddBeside(const Queue& own, const Queue& above, const Resources& request, Search* search);
  std::string DescribeFullQueue(const Job& job, const Resources& request) const;
  std::string DescribeHolder(const Search& search) const;
  std::string DescribeAge(const Search& search, const VictimOutcome& outcome) const;
  std::string Said(const Search& search, const VictimOutcome& outcome,
                   std::string spared = "") const;

  Cycle& cycle_;
  const ClusterState& state_;
  std::map<std::pair<QueueId, int64_t>, Looked> looked_;
  int looked_at_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_PROTECTIONS_H_
