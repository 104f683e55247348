// Join tokens: from the requests of NodeService to changes of the access rules.
#ifndef BERTH_SERVER_COMMANDS_JOIN_TOKENS_H_
#define BERTH_SERVER_COMMANDS_JOIN_TOKENS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/v1/node.pb.h"
#include "core/access/access.h"
#include "core/model/cluster_state.h"
#include "support/pki/join_token.h"

namespace berth {

inline constexpr absl::Duration kDefaultJoinTokenLife = absl::Hours(1);
inline constexpr absl::Duration kLeastJoinTokenLife = absl::Minutes(1);
inline constexpr absl::Duration kMostJoinTokenLife = absl::Hours(168);

// INVALID_ARGUMENT with every violation.
absl::Status ValidateCreateJoinToken(const v1::CreateJoinTokenRequest& request);
absl::Status ValidateAdmitNode(const v1::AdmitNodeRequest& request);

// The change that creates a token, of a valid request; tokens that have expired are dropped with
// it.
AccessChange CreationOf(const v1::CreateJoinTokenRequest& request, const JoinTokenKey& key,
                        const std::string& created_by, const ClusterState& state, absl::Time now);

// The change with which the node is admitted, of a valid request; empty if nothing changes: it has
// no token, or the same request used the token last. PERMISSION_DENIED: it is not admitted. The
// message names no node that the token is for. UNAVAILABLE: an agent speaks for the node already.
absl::StatusOr<AccessChange> AdmissionOf(const v1::AdmitNodeRequest& request,
                                         const ClusterState& state, absl::Time now);

void RenderJoinToken(const JoinToken& token, v1::JoinToken* out);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_JOIN_TOKENS_H_
