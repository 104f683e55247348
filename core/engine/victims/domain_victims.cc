#include "core/engine/victims/domain_victims.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/engine/victims/domain_options.h"
#include "core/engine/victims/scope_victims.h"
#include "core/topology/domain_bound.h"
#include "core/topology/domain_placer.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

class DomainVictims {
 public:
  DomainVictims(Cycle& cycle, const VictimPlanGoal& goal, const WholeScope& scope,
                const MakeVictims& make)
      : cycle_(cycle), state_(cycle.state()), goal_(goal), scope_(scope), make_(make) {}

  VictimOutcome Run();

 private:
  struct Best {
    std::unique_ptr<VictimPlan> plan;  // its source may be gone: it has found what it decides
    VictimCost cost;
    int found = 0;
  };
  bool BudgetSpent() const { return tried_ == kMaxTried || looked_at_ == kMaxLookedAt; }
  void Compare(DomainIndex domain, Best* best);

  Cycle& cycle_;
  const ClusterState& state_;
  const VictimPlanGoal& goal_;
  const WholeScope& scope_;
  const MakeVictims& make_;
  VictimOutcome outcome_;
  int looked_at_ = 0;
  int tried_ = 0;
};

VictimOutcome DomainVictims::Run() {
  {
    const std::unique_ptr<VictimSource> any = make_(nullptr);
    const bool none = !any->Next().has_value();
    outcome_.protected_until = any->protected_until();
    if (none && state_.releasing().empty()) return outcome_;
  }
  const DomainOptions options(
      cycle_, goal_, *scope_.tree,
      UnitNeedsOf(state_, TreesOf(cycle_), goal_.job, ScopeNeedsOf(goal_.job, goal_.needs, 0),
                  *scope_.tree, /*harden=*/false),
      [&](DomainIndex d) { return MayUse(scope_, d); }, *make_(nullptr));
  outcome_.protected_until = std::min(outcome_.protected_until, options.protected_until());
  const std::vector<DomainOptions::Option>& order = options.in_order();
  for (size_t at = 0; at < order.size() && !BudgetSpent();) {
    Best best;
    for (const size_t first = at; at < order.size() && order[first].AsGoodAs(order[at]); ++at) {
      if (!BudgetSpent() && best.found < kMaxCompared) Compare(order[at].domain, &best);
    }
    if (best.plan == nullptr) continue;
    if (best.plan->Waits(&outcome_)) return outcome_;
    if (best.plan->DecideFound()) return {.decided = true};
  }
  return outcome_;
}

// Searches for a plan in the domain; keeps it if it costs less than the best so far.
void DomainVictims::Compare(DomainIndex domain, Best* best) {
  absl::flat_hash_set<JobId> there;  // only looked up
  for (NodeId node : scope_.tree->NodesBelow(domain)) {
    for (TaskKey key : state_.nodes().At(node).tasks) there.insert(key.job);
  }
  std::unique_ptr<VictimSource> source =
      make_([&there](const Job& job) { return there.contains(job.id); });
  auto plan = std::make_unique<VictimPlan>(cycle_, goal_, *source, &scope_, domain);
  const bool found = plan->Find();
  ++looked_at_;
  tried_ += plan->tried() ? 1 : 0;
  outcome_.protected_until = std::min(outcome_.protected_until, source->protected_until());
  outcome_.short_of_share |= plan->short_of_share();
  plan->DescribeFailure(&outcome_);
  if (!found) return;
  ++best->found;
  VictimCost cost = plan->CostFound();
  if (best->plan != nullptr && cost >= best->cost) return;
  best->cost = std::move(cost);
  best->plan = std::move(plan);
}

// Spares jobs that the goal's job must be near.
MakeVictims SparingNeighbours(const Job& job, const MakeVictims& make) {
  return [&job, &make](UsefulJob useful) {
    return make([&job, useful = std::move(useful)](const Job& victim) {
      const auto near = [&](const AffinityTerm& term) {
        return !term.apart && RefersTo(term, job, victim);
      };
      if (std::any_of(job.affinity.begin(), job.affinity.end(), near)) return false;
      return useful == nullptr || useful(victim);
    });
  };
}

VictimOutcome PlanFrom(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make) {
  const std::optional<WholeScope> scope =
      HasTopology(goal.job) ? WholeScopeOf(cycle, goal.job, goal.needs, /*harden=*/false)
                            : std::nullopt;
  if (scope.has_value()) return DomainVictims(cycle, goal, *scope, make).Run();
  if (HasTopology(goal.job)) return PlanScopeVictims(cycle, goal, make);
  const std::unique_ptr<VictimSource> source = make(nullptr);
  VictimPlan plan(cycle, goal, *source);
  const bool few = TasksIn(goal.needs) <= kMaxTasksCompared;
  if (!goal.must_move && few) plan.CompareWith(make);
  const bool found = plan.Find();
  VictimOutcome outcome{.protected_until = source->protected_until(),
                        .short_of_share = plan.short_of_share()};
  if (found && plan.Waits(&outcome)) return outcome;
  if (found && plan.DecideFound()) return {.decided = true};
  plan.DescribeFailure(&outcome);
  return outcome;
}

}  // namespace

VictimOutcome PlanVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make) {
  if (goal.job.affinity.empty()) return PlanFrom(cycle, goal, make);
  return PlanFrom(cycle, goal, SparingNeighbours(goal.job, make));
}

}  // namespace berth
