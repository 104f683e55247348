// Which clients may submit jobs that run as which user of the nodes: config run_as.
#ifndef BERTH_SERVER_SERVICES_RUN_AS_H_
#define BERTH_SERVER_SERVICES_RUN_AS_H_

#include <string>

#include "absl/status/status.h"
#include "berth/config/v1/config.pb.h"
#include "server/access/caller.h"

namespace berth {

using RunAsRules = google::protobuf::RepeatedPtrField<config::v1::RunAs>;

// PERMISSION_DENIED unless a rule names both exactly. OK for an empty user, which requests nothing.
absl::Status CheckRunAs(const RunAsRules& rules, const Caller& client, const std::string& user);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_RUN_AS_H_
