// Computes the members of HyperNodes from their selectors. The core only sees the result:
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

// Caches the compiled selectors of one state while they are unchanged. Its results depend only on
// its arguments. Not thread-safe.
class Membership {
 public:
  // The events for these changes, all at once and given in any order, in the order in which they
  // must be applied: first the tree, then joining and leaving nodes. `changed` are new or replace
  // HyperNodes of the same name; `deleted` exist. New ones get ids by tier, then by name, with
  // numbers in names compared as numbers.
  //
  // In addition to the errors of CheckHyperNodes: INVALID_ARGUMENT for an invalid selector,
  // FAILED_PRECONDITION for an existing node that two unrelated HyperNodes of a kind would claim,
  // unless they did so before (the node came later).
  absl::StatusOr<std::vector<EventBody>> Plan(const ClusterState& state,
                                              absl::Span<const HyperNodeSpec> changed,
                                              absl::Span<const std::string> deleted);

  // The events after these nodes came or registered again; nodes that are gone are skipped. A node
  // that two unrelated HyperNodes claim joins the one with the lower tier, then the smaller name.
  std::vector<EventBody> Follow(const ClusterState& state, absl::Span<const NodeId> nodes);

 private:
  const SelectorIndex& IndexOf(const ClusterState& state);

  uint64_t version_ = 0;
  std::unique_ptr<SelectorIndex> index_;
};

}  // namespace berth

#endif  // BERTH_SERVER_PLANNING_MEMBERSHIP_H_
