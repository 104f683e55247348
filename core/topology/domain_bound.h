// DomainBound: whether every hard scope of a pending gang has a domain with room for it, under
// hypothetical changes of the free room of nodes. It keeps separate counts, in O(depth) per change,
// without touching the state. Plans that evict tasks until a gang fits use it.
//
// Its "no" is certain; its "yes" must still be tried: it checks each scope and shape alone, and
// ignores affinity and reservations.
//
//   gang of 4 in one rack    a: 3 free, b: 2 free, c: 0 free     no
//   one more task ends in b, two in a: Set(...)                  yes, in a
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/topology/domain_room.h"
#include "core/topology/scope.h"

namespace berth {

// The scope that contains all tasks to be placed, if a hard constraint makes one: the job's, or
// that of the only group with pending tasks.
struct WholeScope {
  const TopologyTree* tree = nullptr;
  int32_t highest = kRootTier;
  std::optional<DomainIndex> pin;
};
// nullopt: there is none, or no domain can satisfy its constraint.
std::optional<WholeScope> WholeScopeOf(Cycle& cycle, const Job& job, const JobNeeds& needs,
                                       bool harden);
// True if the scope may use the domain, considering its tier and running tasks.
bool MayUse(const WholeScope& scope, DomainIndex domain);

class DomainBound {
 public:
  // Starts from the current state. `only`: the whole scope must go there. Without hard scopes it
  // always says yes, and no other method need be called.
  DomainBound(Cycle& cycle, const Job& job, const JobNeeds& needs, bool harden,
              std::optional<DomainIndex> only = std::nullopt);

  bool any() const { return impossible_ || !scopes_.empty(); }
  bool Enough() const { return !impossible_ && lacking_ == 0; }
  // True if room on the node could help: it is in a domain with enough room for the whole scope, or
  // there is no such scope.
  bool Useful(NodeId node) const;
  // Sets how many tasks of the shape the node would have room for.
  void Set(NodeId node, ShapeId shape, int64_t fits);

 private:
  struct Need {
    FitKey fits;
    int64_t units = 0;
    std::vector<int32_t> of_node;  // by node id
    DomainRoom room;
  };
  struct Scope {
    const TopologyTree* tree = nullptr;
    std::vector<Need> needs;
    std::vector<bool> may;    // by domain: allowed
    std::vector<bool> holds;  // allowed and with room
    int64_t holding = 0;      // number of these
  };

  using Needs = absl::Span<const ScopeNeed>;
  void AddScope(Cycle& cycle, const Job& job, const TopologyConstraint& says, Needs needs,
                uint32_t begin, uint32_t end, std::optional<DomainIndex> only);
  void AddParts(Cycle& cycle, const Job& job, const ScopeNeed& need);
  // Selects the domains that `may` accepts.
  template <class May>
  void Add(Cycle& cycle, const TopologyTree& tree, const std::vector<UnitNeed>& needs, May&& may);
  void Look(Scope& scope, DomainIndex domain);

  const bool harden_;
  const bool skip_degraded_;  // excludes degraded domains
  bool whole_ = false;        // the first scope contains everything that is placed
  bool impossible_ = false;
  std::vector<Scope> scopes_;
  int64_t lacking_ = 0;  // number of scopes without such a domain
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_
