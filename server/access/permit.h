// Whether a caller may do something, and what to answer if not.
#ifndef BERTH_SERVER_ACCESS_PERMIT_H_
#define BERTH_SERVER_ACCESS_PERMIT_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/access/access.h"
#include "core/model/cluster_state.h"
#include "server/access/caller.h"

namespace berth {

// The queue, its parent, and so on to the root.
using PathToRoot = absl::InlinedVector<QueueId, 8>;
PathToRoot PathOf(const ClusterState& state, QueueId queue);

// Reader lock or loop thread. `act` says what was tried, for the message: "cancel job \"train\"".
// PERMISSION_DENIED with the role that would allow it, where, and who may grant it.
absl::Status PermitOnCluster(const ClusterState& state, const Caller& caller, Verb verb,
                             absl::string_view act);
absl::Status PermitOnQueue(const ClusterState& state, const Caller& caller, Verb verb,
                           const Queue& queue, absl::string_view act);
// NOT_FOUND, as for a name that nobody uses, if the caller may not even list the job.
absl::Status PermitOnJob(const ClusterState& state, const Caller& caller, Verb verb, const Job& job,
                         absl::string_view act);

// The same as answers without messages, for rows of lists.
bool MayOnQueue(const ClusterState& state, const Caller& caller, Verb verb, QueueId queue);
bool MayOnJob(const ClusterState& state, const Caller& caller, Verb verb, const Job& job);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_PERMIT_H_
