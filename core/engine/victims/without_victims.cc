#include "core/engine/victims/without_victims.h"

#include <algorithm>

#include "core/engine/place/fit_count.h"
#include "core/engine/place/placer.h"
#include "core/engine/search/verdict.h"

namespace berth {
namespace {

bool SomethingLeaves(const ClusterState& state) {
  return !state.releasing().empty() || !state.free().soon().empty();
}

VictimOutcome TooLittleRoom() {
  return {.barred = VictimPlan::kTooLittleRoom, .for_lack_of_room = true};
}

// There is room for its tasks, but reservations or other constraints keep it.
VictimOutcome WithinShares(Cycle& cycle, const Job& job, const JobNeeds& needs,
                           Borrowing borrowing) {
  const Resources request = RequestOf(cycle.state(), job, needs);
  const QueueBounds bounds = BoundsAbove(cycle, job.queue, request, borrowing);
  switch (ShortOf(cycle.state(), bounds, request)) {
    case QueuesShort::kNone:
      return {.barred = VictimPlan::kNoPlaceForEach, .for_lack_of_room = true};
    case QueuesShort::kShares:
      return {.short_of_share = true, .barred = VictimPlan::kBeyondShare};
    case QueuesShort::kLimits:
      break;
  }
  return TooLittleRoom();
}

}  // namespace

std::optional<VictimOutcome> OutcomeWithoutVictims(Cycle& cycle, const Job& job,
                                                   const JobNeeds& needs, Borrowing borrowing) {
  const ClusterState& state = cycle.state();
  if (HasTopology(job) || SomethingLeaves(state)) return std::nullopt;
  const bool none =
      std::any_of(needs.groups.begin(), needs.groups.end(), [&](const GroupNeed& need) {
        return need.count > 0 && cycle.search().NoneHasRoom(job.groups[need.group].shape);
      });
  if (none) return TooLittleRoom();
  if (TasksIn(needs) != 1) return std::nullopt;
  Placer placer(cycle);
  if (!placer.OnlyAmountsMatter(job, needs)) return std::nullopt;
  if (placer.HasPlace(job, needs, /*ignore_reservations=*/false)) return std::nullopt;
  if (!placer.HasPlace(job, needs, /*ignore_reservations=*/true)) return TooLittleRoom();
  return WithinShares(cycle, job, needs, borrowing);
}

bool NobodyGives(const ClusterState& state) {
  bool any = false;
  state.queues().ForEach(
      [&](QueueId, const Queue& queue) { any = any || !queue.giving_jobs.empty(); });
  return !any;
}

}  // namespace berth
