// Scopes: the tasks that a topology constraint holds together, and what the constraint means in the
// current trees. A job's scope contains those of its groups, a group's those of its partitions.
#ifndef BERTH_CORE_TOPOLOGY_SCOPE_H_
#define BERTH_CORE_TOPOLOGY_SCOPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/topology/domain_fits.h"
#include "core/topology/domain_room.h"
#include "core/topology/tree.h"

namespace berth {

// True if some soft constraint waits for a better tier.
bool HasPatience(const Job& job);

// A constraint, resolved against the trees.
struct ScopeRule {
  TopologyMode mode = TopologyMode::kNone;
  const TopologyTree* tree = nullptr;  // null: no HyperNode has that kind
  int32_t highest = kRootTier;         // tier; that of the root: any tier, including the root
  bool unknown_tier = false;           // no HyperNode of the kind has that tier name
  // False if no domain can ever satisfy it.
  bool Possible() const {
    return mode != TopologyMode::kHard || (tree != nullptr && !unknown_tier);
  }
};
// With `harden`, a soft constraint with patience is treated as hard.
ScopeRule RuleOf(const ClusterState& state, TopologyTrees& trees, const TopologyConstraint& says,
                 bool harden);

// The lowest domain that contains all tasks of [begin, end) that have a place and keep it,
// including nominated ones. nullopt if none has.
std::optional<DomainIndex> PinOf(const TopologyTree& tree, const Job& job, uint32_t begin,
                                 uint32_t end);

// True if the job's tasks at these places, together with those already placed, satisfy its hard
// constraints. They did when the places were chosen, but HyperNodes may have changed since.
bool KeepsTopology(const ClusterState& state, TopologyTrees& trees, const Job& job,
                   absl::Span<const Placement> places);

// Tasks of one partition that need places.
struct PartNeed {
  uint32_t begin = 0, end = 0;  // of the whole partition
  bool begun = false;           // some members already have places
  std::vector<uint32_t> tasks;
};
// Tasks of one group that need places.
struct ScopeNeed {
  uint32_t group = 0;
  std::vector<uint32_t> tasks;  // ascending
  std::vector<PartNeed> parts;  // if the group has partitions: all of `tasks`
};
// The first pending tasks of each group, starting at `from` (0: its first).
std::vector<ScopeNeed> ScopeNeedsOf(const Job& job, const JobNeeds& needs, uint32_t from);

// This many units of that size: a domain that is to hold them must have room for these and for the
// rest of the scope. Needs of the same shape and size are merged.
struct UnitNeed {
  FitKey fits;
  UnitSize unit;
  int64_t units = 0;
};
// The units for which a domain of that tree must have room. Each is necessary; together they are
// sufficient for tasks of one shape without affinity.
std::vector<UnitNeed> UnitNeedsOf(const ClusterState& state, TopologyTrees& trees, const Job& job,
                                  absl::Span<const ScopeNeed> needs, const TopologyTree& tree,
                                  bool harden);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_SCOPE_H_
