// Which clients may submit jobs that run as which user of the nodes: config run_as.
#ifndef BERTH_SERVER_SERVICES_RUN_AS_H_
#define BERTH_SERVER_SERVICES_RUN_AS_H_

#include <string>

#include "absl/status/status.h"
#include "berth/config/v1/config.pb.h"
#include "server/access/caller.h"

namespace berth {

using RunAsRules = google::protobuf::RepeatedPtrField<config::v1::RunAs>;

// `owner`: of the job, or who wants to enter it. PERMISSION_DENIED unless a rule names the user,
// and the client or the owner, exactly; or both are the same and `as_owner` (access.run_as_owner).
// OK for an empty user, which requests nothing.
absl::Status CheckRunAs(const RunAsRules& rules, bool as_owner, const Caller& client,
                        const std::string& owner, const std::string& user);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_RUN_AS_H_
