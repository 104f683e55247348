// ChangeAccess: from the request to a change that the caller may make.
#ifndef BERTH_SERVER_COMMANDS_ACCESS_CHANGE_H_
#define BERTH_SERVER_COMMANDS_ACCESS_CHANGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/v1/access.pb.h"
#include "core/access/access.h"
#include "core/model/cluster_state.h"
#include "server/access/permit.h"
#include "server/validation/lifecycle.h"

namespace berth {

// FAILED_PRECONDITION: a store of this format does not hold access rules (kFormatOfAccess).
absl::Status CheckFormatOfAccess(uint32_t format);

// INVALID_ARGUMENT with the path of each field that is missing or unknown; NOT_FOUND: queues.
// Reader lock or loop thread, as the next.
absl::StatusOr<AccessChange> AccessChangeFrom(const ClusterState& state,
                                              const v1::ChangeAccessRequest& request);

// OK if the rules accept the change, the caller may make all of it, and somebody may change them
// afterwards. Roles are granted, revoked, defined and deleted by those who have access.grant and
// all verbs of the role there; only administrators enforce rules; nodes may also be revoked by
// those with node.manage.
absl::Status CheckAccessChange(const ClusterState& state, Rights& rights,
                               const AccessChange& change, bool has_administrators);

// The grants of the rules that apply to the principal: in its name, a group's, or everyone's.
bool AppliesTo(const Subject& subject, const Principal& principal);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_ACCESS_CHANGE_H_
