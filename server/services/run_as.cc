#include "server/services/run_as.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"

namespace berth {

absl::Status CheckRunAs(const RunAsRules& rules, const Caller& client, const std::string& user) {
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
