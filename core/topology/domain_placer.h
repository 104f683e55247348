// DomainPlacer: places a job's tasks inside domains, as its topology constraints say: scope by
// scope, job, then groups, then partitions.
//
//   Scope   of the domains that could hold it, by counts: the lowest tier first, healthy before
//           degraded, then the tightest. Tried in the transaction, and taken back if it does not
//           fit after all (tasks near or apart, room kept for others). Hard: up to its tier, else
//           not at all; soft: up to the root. Where tasks of it run, only domains that hold these.
//   Inside  for n units (tasks, or partitions of s tasks): the lowest domain that holds all n, the
//           tightest such, and so on inside it; if none does, the child that holds most takes what
//           it can, and so on with the rest.
//   Leaf    LeafPlacer: one node for all if one has room (but to spread), else by strategy.
//
//   racks a {4 free} b {2 free} c {6 free}, one pod; a gang of 5 goes to c, one of 4 to a; one of 9
//   takes all of c, and 3 of a, as b holds fewer
//
// Cost: O(tasks + domains), for each scope that is placed anew O(domains of its kind), and in
// domains that did not hold what the counts promised, their nodes.
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_PLACER_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_PLACER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/engine/cycle.h"
#include "core/topology/domain_room.h"
#include "core/topology/leaf_placer.h"
#include "core/topology/region.h"
#include "core/topology/scope.h"

namespace berth {

// Asks the cache of the cycle's state.
FitView FitsOf(Cycle& cycle, const TopologyTree& tree, const FitKey& key);
TopologyTrees& TreesOf(Cycle& cycle);
// By configuration, degraded domains are no places for new gangs; the job is one.
bool LeavesOutDegraded(Cycle& cycle, const Job& job);

// For one job and one try.
class DomainPlacer {
 public:
  // `insist`: soft constraints with patience are as hard ones.
  DomainPlacer(Cycle& cycle, const Job& job, const Window& window, bool heedless, bool insist);

  // Places all in the transaction, inside the region; false: not all, and the caller takes back
  // what there is.
  bool PlaceAll(const std::vector<ScopeNeed>& needs, const Region& within = {});

 private:
  using Body = absl::FunctionRef<bool(const Region&)>;
  using Needs = absl::Span<const ScopeNeed>;
  struct Candidate;

  bool InScope(const TopologyConstraint& says, Needs needs, uint32_t begin, uint32_t end,
               const Region& region, Body body);
  std::vector<Candidate> CandidatesFor(const ScopeRule& rule, std::optional<DomainIndex> pin,
                                       Needs needs, const Region& region);
  bool PlaceGroups(Needs needs, const Region& region);
  bool PlaceGroup(const ScopeNeed& need, const Region& region);
  bool PlaceParts(const ScopeNeed& need, const Region& region);
  bool PlacePart(const ScopeNeed& need, const PartNeed& part, const Region& region);
  bool PlaceTasks(const ScopeNeed& need, absl::Span<const uint32_t> tasks, const Region& region);
  bool PlaceAnywhere(const ScopeNeed& need, absl::Span<const uint32_t> tasks);

  Cycle& cycle_;
  const ClusterState& state_;
  const Job& job_;
  const Window window_;
  const bool heedless_;
  const bool insist_;
  const bool leave_out_;  // degraded domains
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_PLACER_H_
