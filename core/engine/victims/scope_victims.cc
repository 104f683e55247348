#include "core/engine/victims/scope_victims.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/engine/victims/domain_options.h"
#include "core/topology/domain_bound.h"
#include "core/topology/domain_placer.h"

namespace berth {
namespace {

class ScopeVictims {
 public:
  ScopeVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make)
      : cycle_(cycle), state_(cycle.state()), goal_(goal), make_(make) {}

  VictimOutcome Run();

 private:
  // For one part of the gang: domains, best first; the first `least` suffice by counts.
  struct Choice {
    const TopologyTree* tree = nullptr;
    std::vector<DomainIndex> domains;
    size_t least = 1;
  };
  struct Found {
    std::unique_ptr<VictimSource> source;
    std::unique_ptr<VictimPlan> plan;
  };
  using Needs = absl::Span<const ScopeNeed>;

  bool Choose();
  bool ChooseFor(const TopologyConstraint& says, Needs needs, uint32_t begin, uint32_t end);
  bool ChooseForParts(const ScopeNeed& need);
  bool Add(const TopologyTree& tree, const DomainOptions& options, int64_t units);
  bool All(size_t times) const;
  std::optional<Found> PlanIn(size_t times);
  std::optional<Found> PlanWith(const UsefulJob& useful);

  Cycle& cycle_;
  const ClusterState& state_;
  const VictimPlanGoal& goal_;
  const MakeVictims& make_;
  std::vector<Choice> choices_;
  VictimOutcome outcome_;
};

bool ScopeVictims::Choose() {
  const Job& job = goal_.job;
  for (const ScopeNeed& need : ScopeNeedsOf(job, goal_.needs, 0)) {
    const Group& group = job.groups[need.group];
    const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
    if (!ChooseFor(group.topology, {&need, 1}, group.first_task, end)) return false;
    if (!ChooseForParts(need)) return false;
  }
  return true;
}

// Each partition that has begun has its own domain; new ones may use all domains.
bool ScopeVictims::ChooseForParts(const ScopeNeed& need) {
  const Group& group = goal_.job.groups[need.group];
  const TopologyConstraint& says = group.partition_topology;
  int64_t whole = 0;
  for (const PartNeed& part : need.parts) {
    whole += part.begun ? 0 : 1;
    const ScopeNeed own{.group = need.group, .tasks = part.tasks, .parts = {}};
    if (part.begun && !ChooseFor(says, {&own, 1}, part.begin, part.end)) return false;
  }
  const ScopeRule rule = RuleOf(state_, TreesOf(cycle_), says, /*harden=*/false);
  if (!rule.Possible()) return false;
  if (whole == 0 || rule.mode != TopologyMode::kHard) return true;
  const FitKey fits{.shape = group.shape, .one_per_node = KeepsApart(group, need.group)};
  const UnitSize unit{.tasks = group.partition_size, .highest_tier = rule.highest};
  const auto may = [&](DomainIndex d) { return rule.tree->At(d).tier <= rule.highest; };
  const DomainOptions options(cycle_, goal_, *rule.tree, {{.fits = fits, .unit = unit, .units = 1}},
                              may, *make_(nullptr));
  return Add(*rule.tree, options, whole);
}

bool ScopeVictims::ChooseFor(const TopologyConstraint& says, Needs needs, uint32_t begin,
                             uint32_t end) {
  const ScopeRule rule = RuleOf(state_, TreesOf(cycle_), says, /*harden=*/false);
  if (!rule.Possible()) return false;
  if (rule.mode != TopologyMode::kHard) return true;
  const WholeScope scope{rule.tree, rule.highest, PinOf(*rule.tree, goal_.job, begin, end)};
  const DomainOptions options(
      cycle_, goal_, *rule.tree,
      UnitNeedsOf(state_, TreesOf(cycle_), goal_.job, needs, *rule.tree, /*harden=*/false),
      [&](DomainIndex d) { return MayUse(scope, d); }, *make_(nullptr));
  return Add(*rule.tree, options, /*units=*/1);
}

// False if all domains together hold fewer units.
bool ScopeVictims::Add(const TopologyTree& tree, const DomainOptions& options, int64_t units) {
  outcome_.protected_until = std::min(outcome_.protected_until, options.protected_until());
  Choice& choice = choices_.emplace_back(Choice{.tree = &tree, .domains = {}, .least = 0});
  for (const DomainOptions::Option& option : options.in_order()) {
    choice.domains.push_back(option.domain);
    if (units <= 0) continue;
    ++choice.least;
    units -= option.units;
  }
  return units <= 0;
}

// This multiple of the minimum includes every domain with possible room.
bool ScopeVictims::All(size_t times) const {
  return std::all_of(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.least * times >= choice.domains.size();
  });
}

std::optional<ScopeVictims::Found> ScopeVictims::PlanIn(size_t times) {
  auto there = std::make_shared<absl::flat_hash_set<JobId>>();  // only looked up
  for (const Choice& choice : choices_) {
    const size_t count = std::min(choice.least * times, choice.domains.size());
    for (size_t i = 0; i < count; ++i) {
      for (NodeId node : choice.tree->NodesBelow(choice.domains[i])) {
        for (TaskKey key : state_.nodes().At(node).tasks) there->insert(key.job);
      }
    }
  }
  return PlanWith([there](const Job& job) { return there->contains(job.id); });
}

std::optional<ScopeVictims::Found> ScopeVictims::PlanWith(const UsefulJob& useful) {
  Found plan{.source = make_(useful), .plan = nullptr};
  plan.plan = std::make_unique<VictimPlan>(cycle_, goal_, *plan.source);
  const bool found = plan.plan->Find();
  outcome_.protected_until = std::min(outcome_.protected_until, plan.source->protected_until());
  outcome_.short_of_share |= plan.plan->short_of_share();
  plan.plan->DescribeFailure(&outcome_);
  if (!found) return std::nullopt;
  return plan;
}

VictimOutcome ScopeVictims::Run() {
  {
    const std::unique_ptr<VictimSource> any = make_(nullptr);
    const bool none = !any->Next().has_value();
    outcome_.protected_until = any->protected_until();
    if (none && state_.releasing().empty()) return outcome_;
  }
  if (!Choose()) return outcome_;
  std::optional<Found> chosen;
  size_t times = 1;
  for (int i = 0; i < kMaxWidenings && !chosen.has_value() && !choices_.empty(); ++i, times *= 2) {
    if (All(times)) break;
    chosen = PlanIn(times);
  }
  std::optional<Found> any = PlanWith(nullptr);
  if (chosen.has_value() && any.has_value() &&
      any->plan->CostFound() <= chosen->plan->CostFound()) {
    std::swap(chosen, any);
  }
  for (std::optional<Found>* plan : {&chosen, &any}) {
    if (!plan->has_value()) continue;
    if ((*plan)->plan->Waits(&outcome_)) return outcome_;
    if ((*plan)->plan->DecideFound()) return {.decided = true};
  }
  return outcome_;
}

}  // namespace

VictimOutcome PlanScopeVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make) {
  return ScopeVictims(cycle, goal, make).Run();
}

}  // namespace berth
