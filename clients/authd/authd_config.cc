#include "clients/authd/authd_config.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/config_file.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::Duration kShortest = absl::Minutes(5);
constexpr absl::Duration kLongest = absl::Hours(168);
constexpr uint32_t kFirstUid = 1000;

}  // namespace

bool IsCertificateLifetime(absl::Duration lifetime) {
  return lifetime >= kShortest && lifetime <= kLongest;
}

bool HasDoorForUsers(const auth::v1::Authd& config) {
  return config.listen() != kNoSocket || config.has_oidc();
}

absl::Status CompleteAuthdConfig(auth::v1::Authd* config) {
  if (config->listen().empty()) config->set_listen(kAuthSocket);
  if (config->servers().empty()) config->set_servers(config->certificate());
  if (config->trust_domain().empty()) config->set_trust_domain("berth");
  if (!config->has_lifetime()) ToProto(kCertificateLifetime, config->mutable_lifetime());
  if (!config->has_first_uid()) config->set_first_uid(kFirstUid);
  std::vector<std::string> problems;
  const auto check = [&](bool ok, absl::string_view field, absl::string_view problem) {
    if (!ok) problems.push_back(absl::StrCat(field, ": ", problem));
  };
  if (config->listen() == kNoSocket) {
    check(config->has_oidc() || config->has_nodes(), "listen",
          "\"off\" needs oidc or nodes; otherwise there is nothing to do");
  } else {
    check(CheckAbsolutePath(config->listen()).ok(), "listen", "must be an absolute path");
  }
  const bool users = HasDoorForUsers(*config);
  for (const auto& [field, path, required] :
       {std::tuple{"certificate", &config->certificate(), users},
        {"key", &config->key(), users},
        {"servers", &config->servers(), true}}) {
    check(!required || !path->empty(), field, "required: a PEM file");
    check(CheckAbsolutePath(*path).ok(), field, "must be an absolute path");
  }
  check(ParseSpiffeId(absl::StrCat("spiffe://", config->trust_domain(), "/user/a")).ok(),
        "trust_domain", "must be lower-case letters, digits, '.', '-' and '_'");
  check(config->first_uid() > 0, "first_uid", "must be at least 1; for root set allow_root");
  check(IsCertificateLifetime(DurationFrom(config->lifetime())), "lifetime", kCertificateLifetimes);
  check(config->log().level().empty() || IsLogLevel(config->log().level()), "log.level",
        "must be trace, debug, info, warn or error");
  if (config->has_oidc()) CompleteOidcConfig(config, &problems);
  if (config->has_nodes()) CompleteNodesConfig(config, &problems);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace berth
