// HyperNodes, and topology constraints of jobs, between the API and the core. Only validated
// values.
#ifndef BERTH_SERVER_CONVERT_TOPOLOGY_H_
#define BERTH_SERVER_CONVERT_TOPOLOGY_H_

#include <google/protobuf/map.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/types.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/hyper_node.h"

namespace berth {

TopologyConstraint TopologyFrom(const v1::TopologyConstraint& topology);
void ToProto(const TopologyConstraint& topology, v1::TopologyConstraint* out);

// "low" 1, "medium" 10, "high" 100, or a number in 1..kMaxWeight; nullopt otherwise.
inline constexpr int32_t kMaxWeight = 1000;
std::optional<int32_t> WeightFrom(absl::string_view text);
// The sum of the weights.
int32_t CommunicationFrom(const google::protobuf::Map<std::string, std::string>& communication);

HyperNodeSpec HyperNodeSpecFrom(const v1::HyperNode& hyper_node);
HyperNodeMember MemberFrom(const v1::HyperNodeSpec::Member& member);
// Name, spec, etag and position in the tree. Sums of the status (server/reads/domain_totals.h) and
// conflicts are not included.
void RenderHyperNode(const ClusterState& state, const HyperNode& domain, v1::HyperNode* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_TOPOLOGY_H_
