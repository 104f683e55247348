// Scopes: which tasks a topology constraint holds together, and what it means in the trees as they
// are now. A job's scope holds those of its groups, a group's those of its partitions.
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

// Some soft constraint waits for a better tier.
bool HasPatience(const Job& job);

// A constraint, looked up.
struct ScopeRule {
  TopologyMode mode = TopologyMode::kNone;
  const TopologyTree* tree = nullptr;  // null: there is no HyperNode of that kind
  int32_t highest = kRootTier;         // tier; the root's: any, the root too
  bool unknown_tier = false;           // no HyperNode of the kind has that tier name
  // It can be met at all, by its words.
  bool Possible() const {
    return mode != TopologyMode::kHard || (tree != nullptr && !unknown_tier);
  }
};
// With `insist` a soft constraint that has patience is as a hard one.
ScopeRule RuleOf(const ClusterState& state, TopologyTrees& trees, const TopologyConstraint& says,
                 bool insist);

// The lowest domain that holds all tasks of [begin, end) that have a place and keep it, nominated
// ones too; nullopt if none of them has.
std::optional<DomainIndex> PinOf(const TopologyTree& tree, const Job& job, uint32_t begin,
                                 uint32_t end);

// The job's tasks at these places, beside those that have a place already, are as its hard
// constraints ask for: they were when the places were chosen, but HyperNodes may have changed
// since.
bool KeepsTopology(const ClusterState& state, TopologyTrees& trees, const Job& job,
                   absl::Span<const Placement> places);

// Tasks of one partition that are to be placed.
struct PartNeed {
  uint32_t begin = 0, end = 0;  // the whole partition's
  bool begun = false;           // it has members already
  std::vector<uint32_t> tasks;
};
// Tasks of one group that are to be placed.
struct ScopeNeed {
  uint32_t group = 0;
  std::vector<uint32_t> tasks;  // ascending
  std::vector<PartNeed> parts;  // of a group with partitions: all of `tasks`
};
// The first waiting tasks from `from` on (0: from its first) of each group that asks.
std::vector<ScopeNeed> ScopeNeedsOf(const Job& job, const JobNeeds& needs, uint32_t from);

// So many units of that size: a domain that is to hold them must have room for these, and for
// others of the scope. Needs of the same shape and size are one.
struct UnitNeed {
  FitKey fits;
  UnitSize unit;
  int64_t units = 0;
};
// What a domain of that tree must have room for. Each is necessary; all together are sufficient for
// tasks of one shape that are neither near nor apart.
std::vector<UnitNeed> UnitNeedsOf(const ClusterState& state, TopologyTrees& trees, const Job& job,
                                  absl::Span<const ScopeNeed> needs, const TopologyTree& tree,
                                  bool insist);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_SCOPE_H_
