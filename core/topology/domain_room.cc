#include "core/topology/domain_room.h"

#include <algorithm>
#include <tuple>

namespace berth {

DomainRoom::DomainRoom(const FitView& view, const UnitSize& unit, const Region& region,
                       bool leave_out)
    : tree_(*view.tree), unit_(unit) {
  if (region.OnlyOf(tree_)) {
    tasks_.assign(view.of_domain.begin(), view.of_domain.end());
  } else {
    CountRegion(view, region);
  }
  if (leave_out && tree_.any_degraded()) SkipDegraded();
  const bool anywhere = unit.tasks == 1 && unit.highest_tier == kRootTier;
  if (!anywhere) CountUnits();
}

// Counts the smallest of its domains.
void DomainRoom::CountRegion(const FitView& view, const Region& region) {
  tasks_.assign(tree_.domains().size(), 0);
  const Region::Part smallest =
      *std::min_element(region.parts.begin(), region.parts.end(), [](const auto& a, const auto& b) {
        return a.tree->At(a.domain).size() < b.tree->At(b.domain).size();
      });
  for (NodeId node : smallest.tree->NodesBelow(smallest.domain)) {
    if (region.Holds(node)) tasks_[tree_.LowestOf(node)] += view.of_node[node.value];
  }
  for (size_t d = tasks_.size(); d-- > 1;) tasks_[tree_.domains()[d].parent] += tasks_[d];
}

void DomainRoom::SkipDegraded() {
  for (DomainIndex d = 1; d < tasks_.size(); ++d) {
    if (tree_.At(d).degraded) NoMoreTasks(d);
  }
}

int64_t DomainRoom::UnitsIn(DomainIndex d) const { return tasks_[d] / unit_.tasks; }

void DomainRoom::CountUnits() {
  units_.assign(tasks_.size(), 0);
  for (auto d = static_cast<DomainIndex>(tasks_.size()); d-- > 0;) {
    if (MayHoldUnit(d)) units_[d] = UnitsIn(d);
    const DomainIndex parent = tree_.At(d).parent;
    if (d != kRootDomain && !MayHoldUnit(parent)) units_[parent] += units_[d];
  }
}

int64_t DomainRoom::OwnTasks(DomainIndex d) const {
  int64_t own = tasks_[d];
  for (DomainIndex c = d + 1; c < tree_.At(d).end; c = tree_.At(c).end) own -= tasks_[c];
  return own;
}

void DomainRoom::Change(DomainIndex lowest, int64_t more) {
  int64_t more_units = 0;  // units gained below by this change
  for (DomainIndex d = lowest;; d = tree_.At(d).parent) {
    tasks_[d] += more;
    if (!units_.empty()) {
      const int64_t before = units_[d];
      const bool full = !full_.empty() && full_[d];
      units_[d] = full ? 0 : (MayHoldUnit(d) ? UnitsIn(d) : before + more_units);
      more_units = units_[d] - before;
    }
    if (d == kRootDomain) return;
  }
}

void DomainRoom::NoMoreTasks(DomainIndex d) {
  Change(d, -tasks_[d]);
  for (DomainIndex below = d + 1; below < tree_.At(d).end; ++below) {
    tasks_[below] = 0;
    if (!units_.empty()) units_[below] = 0;
  }
}

void DomainRoom::NoMoreUnits(DomainIndex d) {
  if (units_.empty()) return NoMoreTasks(d);
  if (full_.empty()) full_.assign(tasks_.size(), false);
  full_[d] = true;
  Change(d, 0);
}

// By rank, then by holders, then by id.
template <class Rank>
bool DomainRoom::Before(const Rank& rank, DomainIndex a, DomainIndex b) const {
  const auto of_a = rank(a), of_b = rank(b);
  if (of_a != of_b) return of_a < of_b;
  if (Holders(a) != Holders(b)) return Holders(a) > Holders(b);
  return tree_.At(a).id < tree_.At(b).id;
}

std::optional<DomainIndex> DomainRoom::LowestHolding(DomainIndex top, int64_t units) const {
  std::optional<DomainIndex> best;
  const auto rank = [&](DomainIndex d) {
    const Domain& domain = tree_.At(d);
    return std::tuple(domain.tier, domain.degraded, Units(d));
  };
  for (DomainIndex d = top + 1; d < tree_.At(top).end;) {
    if (Units(d) < units) {  // nor do its descendants
      d = tree_.At(d).end;
      continue;
    }
    if (!best.has_value() || Before(rank, d, *best)) best = d;
    ++d;
  }
  return best;
}

std::optional<DomainIndex> DomainRoom::Roomiest(DomainIndex top) const {
  std::optional<DomainIndex> best;
  const auto rank = [&](DomainIndex d) { return std::tuple(tree_.At(d).degraded, -Units(d)); };
  for (DomainIndex d = top + 1; d < tree_.At(top).end; d = tree_.At(d).end) {
    if (Units(d) > 0 && (!best.has_value() || Before(rank, d, *best))) best = d;
  }
  return best;
}

}  // namespace berth
