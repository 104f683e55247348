// The API's rules for HyperNodes by themselves. Rules between them and the nodes:
// server/planning/membership.h.
#ifndef BERTH_SERVER_VALIDATION_HYPER_NODE_H_
#define BERTH_SERVER_VALIDATION_HYPER_NODE_H_

#include "absl/status/status.h"
#include "berth/v1/hypernode.pb.h"
#include "core/model/cluster_state.h"

namespace berth {

inline constexpr size_t kMaxHyperNodes = 100'000;
inline constexpr int kMaxHyperNodesPerCall = 20'000;
inline constexpr size_t kMaxHealthReasonBytes = 1024;

absl::Status ValidateCreateHyperNode(const v1::CreateHyperNodeRequest& request);
absl::Status ValidateUpdateHyperNode(const v1::UpdateHyperNodeRequest& request);
absl::Status ValidateApplyHyperNodes(const v1::ApplyHyperNodesRequest& request);

// RESOURCE_EXHAUSTED: this many more would be too many.
absl::Status CheckHyperNodesFit(const ClusterState& state, size_t created, size_t deleted);

// FAILED_PRECONDITION: a source may only change to empty.
absl::Status CheckSourceKept(const HyperNodeSpec& before, const HyperNodeSpec& after);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_HYPER_NODE_H_
