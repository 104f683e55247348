// DomainPlacer: places a job's tasks inside domains according to its topology constraints, scope by
// scope: job, then groups, then partitions.
//
//   Scope   among the domains that could hold it, by counts: the lowest tier first, healthy before
//           degraded, then the tightest. Tried in the transaction, and rolled back if it does not
//           fit after all (affinity, reservations). Hard: up to its tier, else not at all; soft:
//           up to the root. If tasks of it run, only domains that contain these.
//   Inside  for n units (tasks, or partitions of s tasks): the lowest domain that holds all n, the
//           tightest such, and so on inside it; if none does, the child that holds most takes what
//           it can, and so on with the rest.
//   Leaf    LeafPlacer: one node for all if one has room (except to spread), else by strategy.
//
//   racks a {4 free} b {2 free} c {6 free}, one pod; a gang of 5 goes to c, one of 4 to a; one of 9
//   takes all of c, and 3 of a, as b holds fewer
//
// Cost: O(tasks + domains), for each scope that is placed O(domains of its kind), and in domains
// that hold less than their counts, their nodes.
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

// Looks up the cache of the cycle's state.
FitView FitsOf(Cycle& cycle, const TopologyTree& tree, const FitKey& key);
TopologyTrees& TreesOf(Cycle& cycle);
// True if the configuration excludes degraded domains for new gangs, and the job is one.
bool SkipsDegraded(Cycle& cycle, const Job& job);

// For one job and one attempt to place it.
class DomainPlacer {
 public:
  // `harden`: treats soft constraints with patience as hard.
  DomainPlacer(Cycle& cycle, const Job& job, const Window& window, bool ignore_reservations,
               bool harden);

  // Places all tasks in the transaction, inside the region. False: not all were placed, and the
  // caller rolls back.
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
  const bool ignore_reservations_;
  const bool harden_;
  const bool skip_degraded_;  // excludes degraded domains
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_PLACER_H_
