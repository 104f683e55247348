// reclaim: does another queue hold what this one is entitled to? The rules, and why nothing can be
// reclaimed back: core/engine/reclaim_victims.h.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/actions/eviction.h"
#include "core/engine/domain_victims.h"
#include "core/engine/reclaim_victims.h"
#include "core/engine/verdict.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

class Reclaim {
 public:
  explicit Reclaim(Cycle& cycle) : cycle_(cycle), pool_(cycle) {}

  RoomMade MakeRoom(const Job& job, const JobNeeds& needs) {
    const ClusterState& state = cycle_.state();
    const Queue& queue = state.queues().At(job.queue);
    // Nobody else holds anything. A job of another queue opens what is blocked (StateEditor).
    if (queue.active_jobs == state.queues().At(kRootQueue).active_jobs) return {};
    const Resources request = RequestOf(state, job, needs);
    const FairShares::OfQueue& share = cycle_.shares().At(job.queue);
    if (!MayReclaim(queue, share, HeldOnceReleased(queue), request, Preemptible(job, needs))) {
      return RefusedForShare(cycle_, absl::InfiniteFuture());
    }
    const VictimPlanGoal goal{.job = job,
                              .needs = needs,
                              .reason = ReleaseReason::kReclaimed,
                              .why = [&](const Job& victim) { return Why(queue, victim); }};
    const VictimOutcome outcome = PlanVictims(cycle_, goal, [&](UsefulJob useful) {
      return std::make_unique<ReclaimVictims>(cycle_, pool_, job, request, std::move(useful));
    });
    if (outcome.decided) return {.decided = true};
    return RefusedForShare(cycle_, outcome.protected_until);
  }

 private:
  std::string Why(const Queue& queue, const Job& victim) const {
    return absl::StrCat("queue ", queue.spec.name, " is entitled to what queue ",
                        cycle_.state().queues().At(victim.queue).spec.name, " borrowed");
  }

  Cycle& cycle_;
  UnitPool pool_;
};

class ReclaimAction final : public Action {
 public:
  absl::string_view name() const override { return "reclaim"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Reclaim reclaim(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return reclaim.MakeRoom(job, needs);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    return Reclaim(cycle).MakeRoom(job, needs).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeReclaim() { return std::make_unique<ReclaimAction>(); }

}  // namespace berth
