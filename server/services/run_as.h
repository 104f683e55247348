// Which clients may submit jobs that run as which user of the nodes: config run_as.
#ifndef BERTH_SERVER_SERVICES_RUN_AS_H_
#define BERTH_SERVER_SERVICES_RUN_AS_H_

#include <grpcpp/server_context.h>

#include <string>

#include "absl/status/status.h"
#include "berth/config/v1/config.pb.h"

namespace berth {

// The client's identity, as proved by TLS.
struct ClientIdentity {
  bool tls = false;         // with a certificate of the authority
  std::string common_name;  // of the certificate; empty if it has none, or several
};
ClientIdentity IdentityOf(const grpc::ServerContextBase& context);

using RunAsRules = google::protobuf::RepeatedPtrField<config::v1::RunAs>;

// PERMISSION_DENIED unless a rule names both exactly. OK for an empty user, which requests nothing.
absl::Status CheckRunAs(const RunAsRules& rules, const ClientIdentity& client,
                        const std::string& user);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_RUN_AS_H_
