// Access rules as messages of the API. Reader lock or loop thread.
#ifndef BERTH_SERVER_CONVERT_ACCESS_H_
#define BERTH_SERVER_CONVERT_ACCESS_H_

#include <string>

#include "berth/v1/access.pb.h"
#include "core/access/access.h"
#include "core/model/cluster_state.h"

namespace berth {

// The queue that a grant or a question names; "": the root. nullptr if there is none.
const Queue* FindAccessQueue(const ClusterState& state, const std::string& name);

void RenderGrant(const ClusterState& state, const Grant& grant, v1::AccessGrant* out);
void RenderRole(absl::string_view name, VerbSet verbs, bool built_in, v1::AccessRole* out);
void RenderRevocation(const Revocation& revocation, v1::AccessRevocation* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_ACCESS_H_
