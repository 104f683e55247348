// From what HyperNodes say of their members to who is in them. The core only ever sees the result:
// HyperNodeChanged, HyperNodeDeleted, NodesJoined, NodesLeft.
//
//   rack-1 {tier 1, members: regex "n[0-3]"}      spine {tier 2, members: regex "n.*", rack-1}
//   n2, n9 come       n2 is claimed by both; spine is above rack-1, so the lowest counts:
//                     NodesJoined {rack-1, n2}, NodesJoined {spine, n9}
//
// Used by berthd and berth-sim.
#ifndef BERTH_SERVER_PLANNING_MEMBERSHIP_H_
#define BERTH_SERVER_PLANNING_MEMBERSHIP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "server/planning/selectors.h"

namespace berth {

// Keeps the selectors of one state, compiled, for as long as they are the same. What it answers
// follows from its arguments alone. No thread safety.
class Membership {
 public:
  // The events that make these changes, all at once and in any order given, in the order in which
  // they must be applied: first the tree, then who joins and leaves. `changed` are new or replace
  // those of their names; `deleted` exist. New ones get ids by tier, then by name, numbers in names
  // as numbers.
  //
  // Beside what CheckHyperNodes says: INVALID_ARGUMENT for a selector that is none,
  // FAILED_PRECONDITION for a node that is there and that two HyperNodes of a kind would claim of
  // which neither is above the other, unless they did so before (a node that came later).
  absl::StatusOr<std::vector<EventBody>> Plan(const ClusterState& state,
                                              absl::Span<const HyperNodeSpec> changed,
                                              absl::Span<const std::string> deleted);

  // The events after these nodes came or registered again; nodes that are gone are left out. One
  // that two unrelated HyperNodes claim joins that of the lower tier, then of the smaller name.
  std::vector<EventBody> Follow(const ClusterState& state, absl::Span<const NodeId> nodes);

 private:
  const SelectorIndex& IndexOf(const ClusterState& state);

  uint64_t version_ = 0;
  std::unique_ptr<SelectorIndex> index_;
};

}  // namespace berth

#endif  // BERTH_SERVER_PLANNING_MEMBERSHIP_H_
