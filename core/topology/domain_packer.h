// DomainPacker: places tasks or partitions of one group inside one domain, touching as few domains
// as possible at every tier; see core/topology/domain_placer.h, "Inside".
//
// Counts are trusted until a placement fails; tasks that did not fit go to other domains below the
// same one.
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_PACKER_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_PACKER_H_

#include <optional>

#include "absl/types/span.h"
#include "core/topology/domain_room.h"
#include "core/topology/leaf_placer.h"
#include "core/topology/scope.h"

namespace berth {

class DomainPacker {
 public:
  // `unit`: of partitions; one task if there are none.
  DomainPacker(Cycle& cycle, const FitView& view, const UnitSize& unit, const Region& region,
               bool leave_out, LeafPlacer leaf);

  // Places a prefix of the tasks below the domain. Returns how many.
  size_t PlaceTasks(DomainIndex top, absl::Span<const uint32_t> tasks);
  // The same for whole partitions: one that does not fit is undone completely.
  size_t PlaceUnits(DomainIndex top, absl::Span<const PartNeed* const> units);

 private:
  size_t PlaceOwn(DomainIndex domain, absl::Span<const uint32_t> tasks);
  bool PlaceWhole(DomainIndex top, const PartNeed& unit);
  void NoMoreTasks(DomainIndex domain);
  void Took(DomainIndex lowest, int64_t tasks);

  Transaction& transaction_;
  const TopologyTree& tree_;
  const UnitSize unit_;
  DomainRoom tasks_;                 // counts tasks
  std::optional<DomainRoom> units_;  // counts partitions
  LeafPlacer leaf_;
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_PACKER_H_
