#include "server/services/run_as.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"

namespace berth {

ClientIdentity IdentityOf(const grpc::ServerContextBase& context) {
  ClientIdentity client;
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return client;
  // A certificate without any name is still a certificate: what counts is how the client connected.
  const std::vector<grpc::string_ref> types =
      auth->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  const bool insecure = types.empty() || types[0] == "insecure";
  client.tls = auth->IsPeerAuthenticated() || !insecure;
  if (!client.tls) return client;
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  if (names.size() == 1) client.common_name.assign(names[0].data(), names[0].size());
  return client;
}

absl::Status CheckRunAs(const RunAsRules& rules, const ClientIdentity& client,
                        const std::string& user) {
  if (user.empty()) return absl::OkStatus();
  for (const config::v1::RunAs& rule : rules) {
    if (rule.user() != user) continue;
    const auto& names = rule.certificates();
    const bool named = client.tls && !client.common_name.empty() &&
                       std::find(names.begin(), names.end(), client.common_name) != names.end();
    if (named || (!client.tls && rule.without_tls())) return absl::OkStatus();
  }
  const std::string who = !client.tls                  ? "a client without TLS"
                          : client.common_name.empty() ? "a certificate without one common name"
                                                       : Quoted(client.common_name);
  return absl::PermissionDeniedError(
      absl::StrCat("run_as ", Quoted(user), " is not allowed for ", who, " (the server's runAs)"));
}

}  // namespace berth
