// What may be said of a tree of HyperNodes: checked before any of it becomes an event, and by Apply
// once more.
#ifndef BERTH_CORE_MODEL_HYPER_NODE_CHECK_H_
#define BERTH_CORE_MODEL_HYPER_NODE_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"

namespace berth {

// All these at once, in any order: `changed` are new, or replace those of their names; `deleted`
// exist and are not among them. What members say of nodes is not looked at.
//
// INVALID_ARGUMENT for a specification that is wrong by itself, FAILED_PRECONDITION naming the
// culprits for one that does not go with the others: a cycle, a second parent, a member HyperNode
// of another kind or of the same or a higher tier, two tiers of one name.
//
//   spine {tier 2, members: rack-1}, pod {tier 2, members: rack-1}
//   "HyperNode rack-1 is a member of pod and of spine: one parent each"
absl::Status CheckHyperNodes(const ClusterState& state, absl::Span<const HyperNodeSpec> changed,
                             absl::Span<const std::string> deleted);

inline absl::Status CheckHyperNode(const ClusterState& state, const HyperNodeSpec& changed) {
  return CheckHyperNodes(state, absl::MakeConstSpan(&changed, 1), {});
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_HYPER_NODE_CHECK_H_
