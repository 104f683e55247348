// The second door of the core: what should be done now.
#ifndef BERTH_CORE_ENGINE_PLAN_H_
#define BERTH_CORE_ENGINE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

class Policies;  // core/engine/policies.h: the configured actions, filters, scores and orders

// A reason why a class of equal jobs waits. Codes match berth.v1.WaitReason.
enum class WaitCode : uint8_t {
  kNone,
  kInsufficientResources,
  kQueueLimit,
  kQueueClosed,
  kNoMatchingNode,
  kNeverFits,
  kDependency,
  kStartTime,
  kUserHold,
  kRetryBackoff,
  kNotConsidered,
  kQueueRunningJobs,
  kGroupDependency,
  kNodeFencing,
  kNonPreemptibleQuota,
  kGuaranteeKept,
  kBehindHead,
  kReserved,
  kWaitsForBetterTier,  // it fits, but not within the tier that it wishes; that will be free soon
  kNodesBackingOff,     // too little room without nodes that back off after refusing a start
  kJobAffinity          // it fits, but not by where it is to be near to, or apart from, other jobs
};
struct WaitReason {
  WaitCode code = WaitCode::kNone;
  std::string resource;
  int64_t needed = 0;
  int64_t free = 0;
  int64_t limit = 0;
  int32_t nodes = 0;  // kNodesBackingOff: how many, at least
  QueueId queue;
  JobId job;
  std::string detail;
  Time until = absl::InfinitePast();
  std::vector<RoomAsked> asked;  // whose decisions would have helped
  bool operator==(const WaitReason&) const = default;
};

struct PlanCounters {
  uint64_t work = 0;  // counted: nodes looked at and tasks placed
  uint64_t jobs_considered = 0;
  uint64_t tasks_placed = 0;
  bool operator==(const PlanCounters&) const = default;
};

// What one stage of the cycle did.
struct StageCounters {
  std::string name;  // "lifecycle", "usage", then the actions
  uint64_t work = 0;
  uint64_t decisions = 0;
  bool operator==(const StageCounters&) const = default;
};

// Plain data. `decisions` in order; each of them passes Apply on the state as it was before the
// cycle.
struct Plan {
  std::vector<EventBody> decisions;
  bool applied = false;  // they are facts already: see PlanAndAdopt
  PlanCounters counters;
  std::vector<StageCounters> stages;  // those that ran, in order
  bool exhausted = false;             // the budget cut it: call again
  // Nothing to do before, unless something happens; applying decisions is something: with any, it
  // is `now`.
  Time wake_at = absl::InfiniteFuture();
};

// One cycle: the lifecycle stage (what follows from reports, timers and requests), then the
// configured actions. The state is used for trying things out, and is as before when it returns,
// except for derived caches (why a class of jobs is blocked, which jobs are settled): that holds if
// the decisions are then applied. `budget` is in units of PlanCounters::work; the same state,
// policies, now and budget give the same plan on every machine.
Plan PlanCycle(ClusterState& state, const Policies& policies, Time now, uint64_t budget);

// The same, for who applies the decisions at once and to nothing else in between: if all of them
// are binds, as in most large plans, then what was tried becomes facts, which saves undoing it and
// doing it once more. The state is then, in all that facts and sums say and in what is dirty, as
// after Apply of each decision (`applied`; property test); else as PlanCycle leaves it.
Plan PlanAndAdopt(ClusterState& state, const Policies& policies, Time now, uint64_t budget);

// Why the job waits, most important first; empty if it does not.
std::vector<WaitReason> WhyWaiting(const ClusterState& state, const Job& job, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLAN_H_
