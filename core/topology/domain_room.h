// DomainRoom: how many tasks, and units, of one group each domain of a tree is believed to hold
// while the group is placed. Starts from the counts (DomainFits) and follows placements and failed
// placements.
//
// A unit is a partition of `size` tasks, which stay in one domain of at most `highest_tier`. A
// domain of at most that tier holds as many units as its tasks make up; a higher one as many as its
// child domains do. Without partitions a unit is a task.
//
//   pod { rack a: 6 tasks, rack b: 11 tasks }, units of 4 in a rack
//     a holds 1, b holds 2, so the pod 3, though 17 tasks would make 4
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_ROOM_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_ROOM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/topology/domain_fits.h"
#include "core/topology/region.h"
#include "core/topology/tree.h"

namespace berth {

struct UnitSize {
  int32_t tasks = 1;
  int32_t highest_tier = kRootTier;
  bool operator==(const UnitSize&) const = default;
};

class DomainRoom {
 public:
  // Counts only the nodes of `view` inside the region; `leave_out` excludes nodes in and below
  // degraded domains. O(domains), and O(nodes of the region) if the region has domains of other
  // trees. The tree must outlive it.
  DomainRoom(const FitView& view, const UnitSize& unit, const Region& region, bool leave_out);

  // Among domains that are equal otherwise, the one with more comes first. By domain; empty: none.
  void Prefer(absl::Span<const int32_t> holders) { holders_ = holders; }
  int64_t Holders(DomainIndex d) const { return holders_.empty() ? 0 : holders_[d]; }

  int64_t Tasks(DomainIndex d) const { return tasks_[d]; }
  int64_t Units(DomainIndex d) const { return units_.empty() ? tasks_[d] : units_[d]; }
  // Tasks that fit on nodes that joined the domain directly.
  int64_t OwnTasks(DomainIndex d) const;
  // True if a unit may spread over the domain's children.
  bool MayHoldUnit(DomainIndex d) const { return tree_.At(d).tier <= unit_.highest_tier; }

  // This many tasks (negative: fewer) were placed on nodes that joined the domain directly.
  void Take(DomainIndex lowest, int64_t tasks) { Change(lowest, -tasks); }
  // No more tasks, or units, fit there, whatever was counted.
  void NoMoreTasks(DomainIndex d);
  void NoMoreUnits(DomainIndex d);
  void NoMoreOwnTasks(DomainIndex lowest) { Change(lowest, -OwnTasks(lowest)); }

  // Below `d`, excluding it, the domain of the lowest tier that holds this many units: healthy ones
  // first, then the tightest, then by holders, then by id. nullopt: none holds them alone.
  std::optional<DomainIndex> LowestHolding(DomainIndex d, int64_t units) const;
  // The child of `d` that holds the most units, healthy ones first, then by holders. nullopt: none
  // holds any.
  std::optional<DomainIndex> Roomiest(DomainIndex d) const;

  const TopologyTree& tree() const { return tree_; }

 private:
  void CountRegion(const FitView& view, const Region& region);
  void SkipDegraded();
  void CountUnits();
  void Change(DomainIndex lowest, int64_t more);
  int64_t UnitsIn(DomainIndex d) const;
  template <class Rank>
  bool Before(const Rank& rank, DomainIndex a, DomainIndex b) const;

  const TopologyTree& tree_;
  const UnitSize unit_;
  std::vector<int64_t> tasks_;
  std::vector<int64_t> units_;  // empty: units are tasks
  std::vector<bool> full_;      // has no units left; empty: none such
  absl::Span<const int32_t> holders_;
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_ROOM_H_
