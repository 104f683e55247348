// The second entry point of the core: decides what to do now.
#ifndef BERTH_CORE_ENGINE_PLAN_H_
#define BERTH_CORE_ENGINE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

class Policies;  // core/engine/policies.h: the configured actions, filters, scores and orders

// Why a class of equal jobs is pending. Codes match berth.v1.WaitReason.
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
  kWaitsForBetterTier,  // it fits, but not within its preferred tier, which will be free soon
  kNodesBackingOff,     // too little room without nodes that are backing off after a refusal
  kJobAffinity,         // it fits, but not with its affinity to other jobs
  kPauseEnds            // it is resumed, and others use what its frozen tasks lend
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
  std::vector<RoomAsked> asked;  // the actions that could have made room
  bool operator==(const WaitReason&) const = default;
};

struct PlanCounters {
  uint64_t work = 0;  // counted: nodes visited and tasks placed
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

// Plain data. `decisions` are in order; each passes Apply, starting from the state before the
// cycle.
struct Plan {
  std::vector<EventBody> decisions;
  bool applied = false;  // they are already facts: see PlanAndAdopt
  PlanCounters counters;
  std::vector<StageCounters> stages;  // those that ran, in order
  bool exhausted = false;             // the budget cut it: call again
  // Nothing to do before this time, unless something happens. Applying decisions counts as
  // something: if there are any, it is `now`.
  Time wake_at = absl::InfiniteFuture();
};

// One cycle: the lifecycle stage (what follows from reports, timers and requests), then the
// configured actions. Uses the state for trials and restores it before returning, except derived
// caches (why a class of jobs is blocked, which jobs are settled); this requires that the decisions
// are then applied. `budget` is in units of PlanCounters::work; the same state, policies, now and
// budget give the same plan on every machine.
Plan PlanCycle(ClusterState& state, const Policies& policies, Time now, uint64_t budget);

// The same, for callers that apply the decisions at once, with nothing else in between. If all
// decisions are binds, as in most large plans, the trial becomes fact, which saves undoing and
// redoing it (`applied`). Facts, sums and dirty records are then the same as after Apply of each
// decision (property test). Otherwise the state is as PlanCycle leaves it.
Plan PlanAndAdopt(ClusterState& state, const Policies& policies, Time now, uint64_t budget);

// Why the job is pending, most important first; empty if it is not.
std::vector<WaitReason> WhyWaiting(const ClusterState& state, const Job& job, Time now);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLAN_H_
