#include "core/topology/topology_verdict.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/topology/domain_bound.h"
#include "core/topology/domain_placer.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

using Level = ScopeFit::Level;

constexpr size_t kMaxShownTiers = 8;

// Examines one scope: compares its needs with the counts on nodes as they are and as if empty.
class Looker {
 public:
  Looker(Cycle& cycle, const Job& job, const TopologyTree& tree, std::vector<UnitNeed> needs)
      : tree_(tree), needs_(std::move(needs)) {
    const bool fresh = job.occupying == 0;
    const bool leave_out =
        fresh && cycle.policies().topology().degraded == DegradedDomains::kExclude;
    for (UnitNeed need : needs_) {
      now_.emplace_back(FitsOf(cycle, tree, need.fits), need.unit, Region{}, leave_out);
      need.fits.empty = true;
      empty_.emplace_back(FitsOf(cycle, tree, need.fits), need.unit, Region{}, leave_out);
    }
  }
  bool HoldsNow(DomainIndex d) const { return Holds(now_, d); }
  bool HoldsEmpty(DomainIndex d) const { return Holds(empty_, d); }
  DomainCount CountOf(DomainIndex d) const {
    const Domain& domain = tree_.At(d);
    return {.domain = domain.id,
            .tier = domain.tier,
            .fit_now = Fits(now_, d),
            .fit_empty = Fits(empty_, d),
            .degraded = domain.degraded};
  }

 private:
  bool Holds(const std::vector<DomainRoom>& rooms, DomainIndex d) const {
    for (size_t i = 0; i < needs_.size(); ++i) {
      if (rooms[i].Units(d) < needs_[i].units) return false;
    }
    return true;
  }
  // Over all shapes; partitions count only complete ones.
  int64_t Fits(const std::vector<DomainRoom>& rooms, DomainIndex d) const {
    int64_t tasks = 0;
    for (size_t i = 0; i < needs_.size(); ++i) {
      const UnitNeed& need = needs_[i];
      const bool whole = need.unit == UnitSize{};
      const int64_t units = std::min(rooms[i].Units(d), need.units);
      if (whole) {
        tasks += units;
      } else {
        tasks = std::min(tasks, tasks - need.units * need.unit.tasks + units * need.unit.tasks);
      }
    }
    return std::max<int64_t>(tasks, 0);
  }

  const TopologyTree& tree_;
  const std::vector<UnitNeed> needs_;
  std::vector<DomainRoom> now_, empty_;
};

bool MoreRoom(const DomainCount& a, const DomainCount& b) {
  return std::tuple(-a.fit_now, -a.fit_empty, a.degraded, a.tier, a.domain) <
         std::tuple(-b.fit_now, -b.fit_empty, b.degraded, b.tier, b.domain);
}

class Scopes {
 public:
  Scopes(Cycle& cycle, const Job& job, const JobNeeds& needs, bool soft)
      : cycle_(cycle), state_(cycle.state()), job_(job), soft_(soft) {
    const std::vector<ScopeNeed> tasks = ScopeNeedsOf(job, needs, 0);
    Look(*job.topology, Level::kJob, tasks, 0, static_cast<uint32_t>(job.tasks.size()));
    for (const ScopeNeed& need : tasks) {
      const Group& group = job.groups[need.group];
      Look(group.topology, Level::kGroup, {&need, 1}, group.first_task,
           group.first_task + static_cast<uint32_t>(group.replicas));
      LookAtParts(need, group.partition_topology);
    }
  }
  std::vector<ScopeFit> Take() { return std::move(found_); }

 private:
  // One partition that has not begun represents all such; a begun one only itself.
  void LookAtParts(const ScopeNeed& need, const TopologyConstraint& says) {
    bool fresh_seen = false;
    for (const PartNeed& part : need.parts) {
      if (!part.begun && std::exchange(fresh_seen, true)) continue;
      const ScopeNeed own{.group = need.group, .tasks = part.tasks, .parts = {}};
      Look(says, Level::kPartition, {&own, 1}, part.begin, part.end);
    }
  }
  void Look(const TopologyConstraint& says, Level level, absl::Span<const ScopeNeed> needs,
            uint32_t begin, uint32_t end);

  Cycle& cycle_;
  const ClusterState& state_;
  const Job& job_;
  const bool soft_;
  std::vector<ScopeFit> found_;
};

void Scopes::Look(const TopologyConstraint& says, Level level, absl::Span<const ScopeNeed> needs,
                  uint32_t begin, uint32_t end) {
  if (says.mode == TopologyMode::kNone || (says.mode == TopologyMode::kSoft && !soft_)) return;
  const ScopeRule rule = RuleOf(state_, TreesOf(cycle_), says, false);
  ScopeFit fit;
  fit.level = level;
  fit.kind = says.kind;
  fit.highest_tier = rule.highest;
  if (level != Level::kJob) fit.group = needs[0].group;
  for (const ScopeNeed& need : needs) fit.needed_tasks += static_cast<int64_t>(need.tasks.size());
  if (rule.tree == nullptr || rule.unknown_tier) {
    found_.push_back(std::move(fit));
    return;
  }
  const TopologyTree& tree = *rule.tree;
  const Looker looker(cycle_, job_, tree,
                      UnitNeedsOf(state_, TreesOf(cycle_), job_, needs, tree, false));
  const WholeScope scope{&tree, rule.highest, PinOf(tree, job_, begin, end)};
  for (DomainIndex d = 0; d < tree.domains().size(); ++d) {
    const bool could = looker.HoldsEmpty(d);
    const int32_t lowest = fit.lowest_tier_empty.value_or(kRootTier);
    if (could && tree.At(d).tier <= lowest) fit.lowest_tier_empty = tree.At(d).tier;
    if (!MayUse(scope, d)) continue;
    ++fit.domains;
    fit.domains_now += looker.HoldsNow(d) ? 1 : 0;
    fit.domains_empty += could ? 1 : 0;
    fit.best.push_back(looker.CountOf(d));
    if (fit.best.size() == 1 || fit.best.back().fit_empty > fit.largest.fit_empty) {
      fit.largest = fit.best.back();
    }
  }
  const size_t shown = std::min(fit.best.size(), kMaxShownDomains);
  std::partial_sort(fit.best.begin(), fit.best.begin() + static_cast<ptrdiff_t>(shown),
                    fit.best.end(), MoreRoom);
  fit.best.resize(shown);
  found_.push_back(std::move(fit));
}

std::string NameOf(const ClusterState& state, HyperNodeId id) {
  return id == HyperNodeId{} ? "the cluster" : state.hyper_nodes().At(id).spec.name;
}

std::string WhatOf(const Job& job, const ScopeFit& fit) {
  if (fit.level == Level::kJob) return absl::StrCat(fit.needed_tasks, " tasks");
  const char* part = fit.level == Level::kPartition ? "a partition of " : "";
  return absl::StrCat(part, fit.needed_tasks, " tasks of group ", job.groups[fit.group].name);
}

// The amounts for the scope's tasks, group by group, as if all had the first group's shape.
void SayAmounts(const ClusterState& state, const Job& job, const ScopeFit& fit, int64_t there,
                BlockedVerdict* verdict) {
  const auto kind = state.interner().FindKind(verdict->resource);
  if (!kind.has_value()) return;
  const uint32_t group = fit.level == Level::kJob ? 0 : fit.group;
  const Resources& each = state.interner().Shape(job.groups[group].shape).resources;
  verdict->needed = each[*kind] * fit.needed_tasks;
  verdict->free = each[*kind] * there;
}

std::string TierName(Cycle& cycle, const ScopeFit& fit, int32_t tier) {
  const TopologyTree* tree = TreesOf(cycle).Of(cycle.state(), fit.kind);
  return tree == nullptr ? absl::StrCat("tier ", tier) : tree->TierName(tier);
}

// "; its tiers are rack, spine": for a tier that was misspelled.
std::string TiersThatExist(Cycle& cycle, const ScopeFit& fit) {
  const TopologyTree* tree = TreesOf(cycle).Of(cycle.state(), fit.kind);
  std::set<int32_t> tiers;
  for (size_t d = 0; tree != nullptr && d < tree->domains().size(); ++d) {
    const int32_t tier = tree->At(static_cast<DomainIndex>(d)).tier;
    if (tier != kRootTier && tiers.size() < kMaxShownTiers) tiers.insert(tier);
  }
  if (tiers.empty()) return "";
  return absl::StrCat("; its tiers are ",
                      absl::StrJoin(tiers, ", ", [&](std::string* out, int32_t tier) {
                        absl::StrAppend(out, tree->TierName(tier));
                      }));
}

// Explains that no allowed domain could ever hold it.
std::string WhyNever(Cycle& cycle, const Job& job, const ScopeFit& fit) {
  if (fit.domains == 0) {
    return absl::StrCat("no HyperNode of kind ", fit.kind, " is in the requested tiers, for ",
                        WhatOf(job, fit), TiersThatExist(cycle, fit));
  }
  std::string why =
      absl::StrCat("no ", TierName(cycle, fit, fit.highest_tier), ", even empty, holds ",
                   WhatOf(job, fit), "; the largest, ", NameOf(cycle.state(), fit.largest.domain),
                   ", holds ", fit.largest.fit_empty);
  if (fit.lowest_tier_empty.has_value()) {
    absl::StrAppend(&why, "; the lowest tier that could is ",
                    TierName(cycle, fit, *fit.lowest_tier_empty));
  }
  return why;
}

}  // namespace

std::vector<ScopeFit> ScopeFits(Cycle& cycle, const Job& job, const JobNeeds& needs, bool soft) {
  return Scopes(cycle, job, needs, soft).Take();
}

BlockedVerdict TopologyVerdict(Cycle& cycle, const Job& job, const JobNeeds& needs) {
  const ClusterState& state = cycle.state();
  BlockedVerdict verdict =
      ShortageVerdict(state, cycle.search(), job, needs, 0, &cycle.counters().work);
  if (!LacksRoom(verdict)) return verdict;
  const std::vector<ScopeFit> fits = ScopeFits(cycle, job, needs, false);
  for (const ScopeFit& fit : fits) {
    if (fit.domains_empty > 0) continue;
    verdict.code = static_cast<uint8_t>(WaitCode::kNeverFits);
    verdict.wake = WakeOn::kChange;
    verdict.detail = WhyNever(cycle, job, fit);
    SayAmounts(state, job, fit, fit.largest.fit_empty, &verdict);
    return verdict;
  }
  for (const ScopeFit& fit : fits) {
    if (fit.domains_now > 0) continue;
    const DomainCount& best = fit.best.front();
    verdict.detail = absl::StrCat(NameOf(state, best.domain), " has room for ", best.fit_now,
                                  " of ", WhatOf(job, fit), " now, as much as any ",
                                  TierName(cycle, fit, fit.highest_tier));
    SayAmounts(state, job, fit, best.fit_now, &verdict);
    return verdict;
  }
  verdict.detail =
      absl::StrCat("no domain has room for all ", TasksIn(needs), " tasks in the requested layout");
  return verdict;
}

}  // namespace berth
