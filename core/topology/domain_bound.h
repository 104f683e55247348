// DomainBound: is there, for every hard scope of a waiting gang, a domain with room for it, while
// nodes would have more or less to give than they have? Counted on the side, in O(depth) for each
// change, without touching the state: for plans that let tasks go until the gang fits.
//
// What it denies is impossible. What it grants must still be tried: it looks at each scope and
// shape alone, and knows nothing of tasks near or apart and of reservations.
//
//   gang of 4 in one rack    a: 3 free, b: 2 free, c: 0 free     denied
//   one more goes in b, two in a: Set(...)                       granted, for a
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/topology/domain_room.h"
#include "core/topology/scope.h"

namespace berth {

// The scope that holds all that is to be placed, if a hard constraint makes one: the job's, or that
// of the only group that asks.
struct WholeScope {
  const TopologyTree* tree = nullptr;
  int32_t highest = kRootTier;
  std::optional<DomainIndex> pin;
};
// nullopt: there is none, or it cannot be met by its words.
std::optional<WholeScope> WholeScopeOf(Cycle& cycle, const Job& job, const JobNeeds& needs,
                                       bool insist);
// The scope may use the domain, by its tier and by what runs already.
bool MayUse(const WholeScope& scope, DomainIndex domain);

class DomainBound {
 public:
  // Begins as the state is. `only`: the whole scope must go there. Without hard scopes it grants
  // everything, and nothing else of it need be called.
  DomainBound(Cycle& cycle, const Job& job, const JobNeeds& needs, bool insist,
              std::optional<DomainIndex> only = std::nullopt);

  bool any() const { return impossible_ || !scopes_.empty(); }
  bool Enough() const { return !impossible_ && lacking_ == 0; }
  // Room on the node could serve: it is in a domain that has enough for the whole scope, or there
  // is no such scope.
  bool Useful(NodeId node) const;
  // Tasks of the shape that the node would have room for.
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
    std::vector<bool> may;    // by domain: it may be used
    std::vector<bool> holds;  // and has room
    int64_t holding = 0;      // domains
  };

  using Needs = absl::Span<const ScopeNeed>;
  void AddScope(Cycle& cycle, const Job& job, const TopologyConstraint& says, Needs needs,
                uint32_t begin, uint32_t end, std::optional<DomainIndex> only);
  void AddParts(Cycle& cycle, const Job& job, const ScopeNeed& need);
  // May be used: those for which `may` says so.
  template <class May>
  void Add(Cycle& cycle, const TopologyTree& tree, const std::vector<UnitNeed>& needs, May&& may);
  void Look(Scope& scope, DomainIndex domain);

  const bool insist_;
  const bool leave_out_;  // degraded domains
  bool whole_ = false;    // the first scope is that of all that is placed
  bool impossible_ = false;
  std::vector<Scope> scopes_;
  int64_t lacking_ = 0;  // scopes that no domain holds
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_BOUND_H_
