#include "core/topology/domain_bound.h"

#include <algorithm>
#include <utility>

#include "core/topology/domain_placer.h"

namespace berth {

std::optional<WholeScope> WholeScopeOf(Cycle& cycle, const Job& job, const JobNeeds& needs,
                                       bool harden) {
  const auto look = [&](const TopologyConstraint& says, uint32_t begin,
                        uint32_t end) -> std::optional<WholeScope> {
    const ScopeRule rule = RuleOf(cycle.state(), TreesOf(cycle), says, harden);
    if (rule.mode != TopologyMode::kHard || !rule.Possible()) return std::nullopt;
    return WholeScope{rule.tree, rule.highest, PinOf(*rule.tree, job, begin, end)};
  };
  auto scope = look(*job.topology, 0, static_cast<uint32_t>(job.tasks.size()));
  if (scope.has_value() || needs.groups.size() != 1) return scope;
  const Group& group = job.groups[needs.groups[0].group];
  return look(group.topology, group.first_task,
              group.first_task + static_cast<uint32_t>(group.replicas));
}

// As in DomainPlacer: the place of running tasks takes precedence over the tier.
bool MayUse(const WholeScope& scope, DomainIndex domain) {
  const bool low = scope.tree->At(domain).tier <= scope.highest;
  if (!scope.pin.has_value()) return low;
  return scope.tree->Holds(domain, *scope.pin) && (low || domain == *scope.pin);
}

DomainBound::DomainBound(Cycle& cycle, const Job& job, const JobNeeds& needs, bool harden,
                         std::optional<DomainIndex> only)
    : harden_(harden), skip_degraded_(SkipsDegraded(cycle, job)) {
  if (!HasTopology(job)) return;
  const std::vector<ScopeNeed> tasks = ScopeNeedsOf(job, needs, 0);
  const bool of_job =
      WholeScopeOf(cycle, job, {.gang = needs.gang, .groups = {}}, harden).has_value();
  whole_ = WholeScopeOf(cycle, job, needs, harden).has_value();
  AddScope(cycle, job, *job.topology, tasks, 0, static_cast<uint32_t>(job.tasks.size()), only);
  for (const ScopeNeed& need : tasks) {
    const Group& group = job.groups[need.group];
    const bool whole = !of_job && tasks.size() == 1;
    AddScope(cycle, job, group.topology, {&need, 1}, group.first_task,
             group.first_task + static_cast<uint32_t>(group.replicas), whole ? only : std::nullopt);
    AddParts(cycle, job, need);
  }
}

void DomainBound::AddScope(Cycle& cycle, const Job& job, const TopologyConstraint& says,
                           Needs needs, uint32_t begin, uint32_t end,
                           std::optional<DomainIndex> only) {
  const ScopeRule rule = RuleOf(cycle.state(), TreesOf(cycle), says, harden_);
  impossible_ |= !rule.Possible();
  if (rule.mode != TopologyMode::kHard || !rule.Possible()) return;
  const WholeScope scope{rule.tree, rule.highest, PinOf(*rule.tree, job, begin, end)};
  const auto units = UnitNeedsOf(cycle.state(), TreesOf(cycle), job, needs, *rule.tree, harden_);
  Add(cycle, *rule.tree, units,
      [&](DomainIndex d) { return MayUse(scope, d) && (!only.has_value() || d == *only); });
}

// Each partition that has begun has its own domain; the others share what all domains have.
void DomainBound::AddParts(Cycle& cycle, const Job& job, const ScopeNeed& need) {
  const TopologyConstraint& says = job.groups[need.group].partition_topology;
  if (need.parts.empty() || says.mode == TopologyMode::kNone) return;
  const ScopeRule rule = RuleOf(cycle.state(), TreesOf(cycle), says, harden_);
  for (const PartNeed& part : need.parts) {
    const ScopeNeed own{.group = need.group, .tasks = part.tasks, .parts = {}};
    if (part.begun) AddScope(cycle, job, says, {&own, 1}, part.begin, part.end, std::nullopt);
  }
  impossible_ |= !rule.Possible();
  if (rule.mode != TopologyMode::kHard || !rule.Possible()) return;
  const auto units =
      UnitNeedsOf(cycle.state(), TreesOf(cycle), job, {&need, 1}, *rule.tree, harden_);
  Add(cycle, *rule.tree, units, [](DomainIndex d) { return d == kRootDomain; });
}

template <class May>
void DomainBound::Add(Cycle& cycle, const TopologyTree& tree, const std::vector<UnitNeed>& needs,
                      May&& may) {
  Scope& scope = scopes_.emplace_back();
  scope.tree = &tree;
  for (const UnitNeed& need : needs) {
    const FitView view = FitsOf(cycle, tree, need.fits);
    scope.needs.push_back({.fits = need.fits,
                           .units = need.units,
                           .of_node = {view.of_node.begin(), view.of_node.end()},
                           .room = DomainRoom(view, need.unit, {}, skip_degraded_)});
  }
  const size_t domains = tree.domains().size();
  scope.holds.assign(domains, false);
  ++lacking_;
  for (DomainIndex d = 0; d < domains; ++d) scope.may.push_back(may(d));
  for (DomainIndex d = 0; d < domains; ++d) Look(scope, d);
}

void DomainBound::Look(Scope& scope, DomainIndex domain) {
  if (!scope.may[domain]) return;
  const bool holds = std::all_of(scope.needs.begin(), scope.needs.end(), [&](const Need& need) {
    return need.room.Units(domain) >= need.units;
  });
  if (scope.holds[domain] == holds) return;
  scope.holds[domain] = holds;
  lacking_ += scope.holding == 0 ? -1 : 0;
  scope.holding += holds ? 1 : -1;
  lacking_ += scope.holding == 0 ? 1 : 0;
}

bool DomainBound::Useful(NodeId node) const {
  if (!whole_ || scopes_.empty()) return true;
  const Scope& scope = scopes_.front();
  for (DomainIndex d = scope.tree->LowestOf(node);; d = scope.tree->At(d).parent) {
    if (scope.holds[d]) return true;
    if (d == kRootDomain) return false;
  }
}

void DomainBound::Set(NodeId node, ShapeId shape, int64_t fits) {
  for (Scope& scope : scopes_) {
    const DomainIndex lowest = scope.tree->LowestOf(node);
    if (skip_degraded_ && scope.tree->At(lowest).degraded) continue;
    bool changed = false;
    for (Need& need : scope.needs) {
      if (need.fits.shape != shape) continue;
      const auto now =
          static_cast<int32_t>(need.fits.one_per_node ? std::min<int64_t>(fits, 1) : fits);
      int32_t& before = need.of_node[node.value];
      if (now == before) continue;
      need.room.Take(lowest, int64_t{before} - now);
      before = now;
      changed = true;
    }
    if (!changed) continue;
    for (DomainIndex d = lowest;; d = scope.tree->At(d).parent) {
      Look(scope, d);
      if (d == kRootDomain) break;
    }
  }
}

}  // namespace berth
