// Validity of a tree of HyperNodes: checked before changes become events, and again by Apply.
#ifndef BERTH_CORE_MODEL_HYPER_NODE_CHECK_H_
#define BERTH_CORE_MODEL_HYPER_NODE_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"

namespace berth {

// Checks all these changes together, in any order: `changed` are new, or replace those with their
// names; `deleted` exist and are not among them. Ignores what members say about nodes.
//
// INVALID_ARGUMENT for a specification that is wrong by itself. FAILED_PRECONDITION, naming the
// HyperNodes, for one that conflicts with others: a cycle, a second parent, a member HyperNode of
// another kind or of the same or a higher tier, two tiers with one name.
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
