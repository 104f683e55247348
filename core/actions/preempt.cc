// preempt: does a less important job of the same queue hold what this one needs? Victims are
// preemptible jobs of strictly lower priority; so of two jobs at most one can ever preempt the
// other. And only as far as the queue's fair share allows: core/engine/queue_bounds.h.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/actions/eviction.h"
#include "core/engine/domain_victims.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

RoomMade Preempt(Cycle& cycle, UnitPool& pool, const Job& job, const JobNeeds& needs) {
  const VictimPlanGoal goal{.job = job,
                            .needs = needs,
                            .reason = ReleaseReason::kPreempted,
                            .why = [&job](const Job& victim) {
                              return absl::StrCat("its priority ", victim.priority, " is below ",
                                                  job.priority);
                            }};
  const VictimOutcome outcome = PlanVictims(cycle, goal, [&](UsefulJob useful) {
    return std::make_unique<QueueVictims>(pool, cycle.state(), job.queue, job.id, job.priority,
                                          std::move(useful));
  });
  return CameOf(cycle, outcome);
}

class PreemptAction final : public Action {
 public:
  absl::string_view name() const override { return "preempt"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    UnitPool pool(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return Preempt(cycle, pool, job, needs);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    UnitPool pool(cycle);
    return Preempt(cycle, pool, job, needs).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakePreempt() { return std::make_unique<PreemptAction>(); }

}  // namespace berth
