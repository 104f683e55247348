// What reclaim, preempt and consolidate have in common: which jobs they make room for.
#ifndef BERTH_CORE_ACTIONS_EVICTION_H_
#define BERTH_CORE_ACTIONS_EVICTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/engine/cycle.h"
#include "core/engine/victims/victim_plan.h"
#include "core/model/pending_index.h"

namespace berth {

// The result of trying to make room for a job.
struct RoomMade {
  bool decided = false;
  // If not decided: when a victim's age protection ends, or fair shares may allow it.
  Time again = absl::InfiniteFuture();
  bool when_queue_shrinks = false;  // not decided because of what the job's queue holds
  std::string barred = {};          // not decided: why, for people
};
// Fair shares follow demand, in other queues too, so a job refused for its share is tried again
// later.
inline constexpr Duration kAskAgain = absl::Seconds(10);
RoomMade RefusedForShare(const Cycle& cycle, Time protected_until, std::string barred);
// The result of a plan. `barred`: why nothing was decided.
RoomMade ResultOf(const Cycle& cycle, const VictimOutcome& outcome, std::string barred);

using MakeRoom = std::function<RoomMade(const Job& job, const JobNeeds& needs)>;

// Other jobs hold what the class lacks, so evicting them may help.
bool EvictionMayHelp(const BlockedVerdict& verdict);

// Calls `make_room` for the first job of every class that was found short of room, of a limit, or
// of resources kept for guarantees since the last cycle that was not cut. The order is that in
// which they were found, which is service order. A parked class costs nothing. The needs of a job
// that only grows are tried one by one.
//
// After a cycle that was cut, the next one continues behind the last class that `action` processed.
// Each cycle processes at least one.
//
// If a class was helped, its next job follows, unless another class of its queue comes first; then
// it is tried again in the next cycle. A class that was not helped is re-evaluated when RoomMade
// says so.
void ForEachMissed(Cycle& cycle, absl::string_view action, const MakeRoom& make_room);

}  // namespace berth

#endif  // BERTH_CORE_ACTIONS_EVICTION_H_
