// What reclaim, preempt and consolidate have in common: for whom they are asked.
#ifndef BERTH_CORE_ACTIONS_EVICTION_H_
#define BERTH_CORE_ACTIONS_EVICTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/engine/cycle.h"
#include "core/engine/victim_plan.h"
#include "core/model/pending_index.h"

namespace berth {

// What came of trying to make room for a job.
struct RoomMade {
  bool decided = false;
  // Not decided: when a victim that is protected for its age may be taken, or shares may allow it.
  Time again = absl::InfiniteFuture();
  bool when_queue_shrinks = false;  // not decided because of what the job's own queue holds
  std::string barred = {};          // not decided: why, for people
};
// Fair shares follow demand, in other queues too: who is refused for its share asks again.
inline constexpr Duration kAskAgain = absl::Seconds(10);
RoomMade RefusedForShare(const Cycle& cycle, Time protected_until, std::string barred);
// Of a plan; `barred`: why nothing was decided.
RoomMade CameOf(const Cycle& cycle, const VictimOutcome& outcome, std::string barred);

using MakeRoom = std::function<RoomMade(const Job& job, const JobNeeds& needs)>;

// What bars the class is something that others hold: they might be stopped for it.
bool MayBeHelped(const BlockedVerdict& verdict);

// Calls `make_room` for the first job of every class that was found short of room, of a limit, or
// of what is kept for guarantees since the last cycle that was not cut: in the order in which they
// were found, which is that of service. A parked class costs nothing. The needs of a job that only
// grows are offered one by one.
//
// A cycle that is cut goes on, next time, after the last class that `action` has dealt with: one at
// least in each.
//
// A class that was helped goes on with its next job, unless another class of its queue comes first;
// then it is tried again in the next cycle. One that was not helped is looked at again when
// RoomMade says so.
void ForEachMissed(Cycle& cycle, absl::string_view action, const MakeRoom& make_room);

}  // namespace berth

#endif  // BERTH_CORE_ACTIONS_EVICTION_H_
