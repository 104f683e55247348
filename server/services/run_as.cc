#include "server/services/run_as.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"

namespace berth {

namespace {

bool Has(const google::protobuf::RepeatedPtrField<std::string>& names, const std::string& name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

std::string WhoAsks(const Caller& client, const std::string& owner) {
  if (!owner.empty()) return Quoted(owner);
  if (!client.tls) return "a client without TLS";
  return client.common_name.empty() ? "a certificate without one common name"
                                    : Quoted(client.common_name);
}

}  // namespace

absl::Status CheckRunAs(const RunAsRules& rules, bool as_owner, const Caller& client,
                        const std::string& owner, const std::string& user) {
  if (user.empty() || (as_owner && user == owner)) return absl::OkStatus();
  for (const config::v1::RunAs& rule : rules) {
    if (rule.user() != user) continue;
    const bool named = client.tls && Has(rule.certificates(), client.common_name);
    const bool local = !client.tls && rule.without_tls();
    if (named || local || Has(rule.owners(), owner)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("run_as ", Quoted(user), " is not allowed for ",
                                                  WhoAsks(client, owner), " (the server's runAs)"));
}

}  // namespace berth
