#include "core/topology/domain_packer.h"

#include <algorithm>
#include <utility>

namespace berth {

DomainPacker::DomainPacker(Cycle& cycle, const FitView& view, const UnitSize& unit,
                           const Region& region, bool leave_out, LeafPlacer leaf)
    : transaction_(cycle.transaction()),
      tree_(*view.tree),
      unit_(unit),
      tasks_(view, {}, region, leave_out),
      leaf_(std::move(leaf)) {
  if (unit.tasks > 1 || unit.highest_tier != kRootTier) {
    units_.emplace(view, unit, region, leave_out);
    units_->Prefer(leaf_.HoldersIn(tree_));
  }
  tasks_.Prefer(leaf_.HoldersIn(tree_));
}

void DomainPacker::Took(DomainIndex lowest, int64_t tasks) {
  tasks_.Take(lowest, tasks);
  if (units_.has_value()) units_->Take(lowest, tasks);
}

void DomainPacker::NoMoreTasks(DomainIndex domain) {
  tasks_.NoMoreTasks(domain);
  if (units_.has_value()) units_->NoMoreTasks(domain);
}

// On nodes that joined the domain directly. If fewer fit than were counted, none remain to be
// counted.
size_t DomainPacker::PlaceOwn(DomainIndex domain, absl::Span<const uint32_t> tasks) {
  const size_t placed = leaf_.Place(tree_.NodesOf(domain), tasks);
  Took(domain, static_cast<int64_t>(placed));
  const int64_t left = placed < tasks.size() ? tasks_.OwnTasks(domain) : 0;
  if (left > 0) Took(domain, left);
  return placed;
}

size_t DomainPacker::PlaceTasks(DomainIndex top, absl::Span<const uint32_t> tasks) {
  size_t done = 0;
  while (done < tasks.size()) {
    const auto rest = static_cast<int64_t>(tasks.size() - done);
    std::optional<DomainIndex> into = tasks_.LowestHolding(top, rest);
    if (!into.has_value()) {
      const int64_t own = tasks_.OwnTasks(top);
      if (own < rest) into = tasks_.Roomiest(top);
      if (!into.has_value() && own <= 0) break;
    }
    if (!into.has_value()) {
      done += PlaceOwn(top, tasks.subspan(done));
      continue;
    }
    const auto asked = static_cast<size_t>(std::min(rest, tasks_.Tasks(*into)));
    const size_t placed = PlaceTasks(*into, tasks.subspan(done, asked));
    done += placed;
    if (placed < asked) NoMoreTasks(*into);
  }
  return done;
}

size_t DomainPacker::PlaceUnits(DomainIndex top, absl::Span<const PartNeed* const> units) {
  size_t done = 0;
  while (done < units.size()) {
    const auto rest = static_cast<int64_t>(units.size() - done);
    std::optional<DomainIndex> into = units_->LowestHolding(top, rest);
    if (!into.has_value()) into = units_->Roomiest(top);
    if (!into.has_value()) break;
    const auto asked = static_cast<size_t>(std::min(rest, units_->Units(*into)));
    const size_t placed = PlaceUnits(*into, units.subspan(done, asked));
    done += placed;
    if (placed < asked) units_->NoMoreUnits(*into);
  }
  // Units that no single child holds.
  while (done < units.size() && units_->MayHoldUnit(top) && tasks_.Tasks(top) >= unit_.tasks &&
         PlaceWhole(top, *units[done])) {
    ++done;
  }
  return done;
}

bool DomainPacker::PlaceWhole(DomainIndex top, const PartNeed& unit) {
  const size_t before = transaction_.placed().size();
  if (PlaceTasks(top, unit.tasks) == unit.tasks.size()) return true;
  for (size_t i = before; i < transaction_.placed().size(); ++i) {
    const NodeId node = transaction_.placed()[i].node;
    Took(tree_.LowestOf(node), -1);
    leaf_.Return(node);
  }
  transaction_.UnplaceTo(before);
  return false;
}

}  // namespace berth
