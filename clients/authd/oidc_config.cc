// The section `oidc` of the configuration.
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clients/authd/authd_config.h"
#include "core/access/access.h"
#include "support/config_file.h"
#include "support/fetch/https_client.h"
#include "support/pki/certificate.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using auth::v1::Oidc;
using auth::v1::TokenRule;

constexpr int kMaxRules = 64;
constexpr int kMaxEntries = 32;  // of each list of a rule
constexpr size_t kMaxTextBytes = 256;
constexpr absl::Duration kDefaultAge = absl::Hours(1);
constexpr absl::Duration kLeastAge = absl::Minutes(1), kMostAge = absl::Hours(24);

bool IsText(absl::string_view text) { return !text.empty() && text.size() <= kMaxTextBytes; }
bool IsName(absl::string_view name) { return IsAccessName(name) && CanBeInCertificate(name); }
bool IsPrefix(absl::string_view text) { return text.empty() || IsName(text); }

// A scope as RFC 6749 has it; several are separated by spaces.
bool IsScope(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '"' || c == '\\') return false;
  }
  return IsText(text);
}

class RuleChecker {
 public:
  RuleChecker(TokenRule* rule, std::string field, std::vector<std::string>* problems)
      : rule_(*rule), field_(std::move(field)), problems_(*problems) {}

  void Complete(const auth::v1::Authd& config) {
    if (rule_.scopes().empty() && !rule_.client_id().empty()) {
      rule_.add_scopes("openid");
      rule_.add_scopes("profile");
    }
    if (rule_.audiences().empty() && !rule_.client_id().empty()) {
      rule_.add_audiences(rule_.client_id());
    }
    if (!rule_.has_max_token_age()) ToProto(kDefaultAge, rule_.mutable_max_token_age());
    if (!rule_.has_lifetime()) *rule_.mutable_lifetime() = config.lifetime();
  }

  void Check() {
    const bool query = absl::StrContains(rule_.issuer(), '?');
    Expect(IsHttpsUrl(rule_.issuer()) && !query, "issuer",
           "must be an https URL without '?' and '#'");
    Expect(CheckAbsolutePath(rule_.ca_file()).ok(), "ca_file", "must be an absolute path");
    const absl::Duration age = DurationFrom(rule_.max_token_age());
    Expect(age >= kLeastAge && age <= kMostAge, "max_token_age", "must be 1m..24h");
    Expect(IsCertificateLifetime(DurationFrom(rule_.lifetime())), "lifetime",
           kCertificateLifetimes);
    CheckClient();
    CheckUser();
    CheckGroups();
  }

 private:
  void Expect(bool ok, absl::string_view field, absl::string_view problem) {
    if (!ok) problems_.push_back(absl::StrCat(field_, ".", field, ": ", problem));
  }

  void CheckClient() {
    Expect(rule_.client_id().size() <= kMaxTextBytes, "client_id", "has at most 256 bytes");
    Expect(!rule_.audiences().empty(), "audiences",
           "required without client_id: a token for somebody else must give nothing here");
    Expect(rule_.client_id().empty() ? rule_.scopes().empty() : true, "scopes", "needs client_id");
    Expect(rule_.audiences_size() <= kMaxEntries, "audiences", "has at most 32 entries");
    Expect(rule_.scopes_size() <= kMaxEntries, "scopes", "has at most 32 entries");
    for (const std::string& audience : rule_.audiences()) {
      Expect(IsText(audience), "audiences", "each has 1 to 256 bytes");
    }
    bool open_id = rule_.scopes().empty();
    for (const std::string& scope : rule_.scopes()) {
      Expect(IsScope(scope), "scopes", "each is a word without quotes");
      open_id = open_id || scope == "openid";
    }
    Expect(open_id, "scopes", "must contain openid: without it an issuer gives no identity token");
    Expect(rule_.required_claims_size() <= kMaxEntries, "required_claims",
           "has at most 32 entries");
    for (const auto& [name, value] : rule_.required_claims()) {
      Expect(IsText(name) && value.size() <= kMaxTextBytes, "required_claims",
             "names and values have at most 256 bytes");
    }
  }

  void CheckUser() {
    const bool by_claim = !rule_.user_claim().empty();
    Expect(by_claim != !rule_.user().empty(), "user_claim",
           "set either user_claim, the claim with the user's name, or user, a fixed name");
    Expect(rule_.user_claim().size() <= kMaxTextBytes, "user_claim", "has at most 256 bytes");
    Expect(rule_.user().empty() || IsName(rule_.user()), "user", "is no name of a user");
    Expect(by_claim || rule_.remove_suffix().empty(), "remove_suffix", "needs user_claim");
    Expect(by_claim || rule_.user_prefix().empty(), "user_prefix", "needs user_claim");
    Expect(rule_.remove_suffix().size() <= kMaxTextBytes, "remove_suffix", "has at most 256 bytes");
    Expect(IsPrefix(rule_.user_prefix()), "user_prefix", "cannot begin the name of a user");
  }

  void CheckGroups() {
    Expect(rule_.groups_claim().size() <= kMaxTextBytes, "groups_claim", "has at most 256 bytes");
    Expect(!rule_.groups_claim().empty() || rule_.group_prefix().empty(), "group_prefix",
           "needs groups_claim");
    Expect(IsPrefix(rule_.group_prefix()), "group_prefix", "cannot begin the name of a group");
    Expect(rule_.groups_size() <= kMaxEntries, "groups", "has at most 32 entries");
    std::set<std::string> seen;
    for (const std::string& group : rule_.groups()) {
      Expect(IsName(group), "groups", "contains no name of a group");
      Expect(seen.insert(group).second, "groups", "contains a group twice");
    }
  }

  TokenRule& rule_;
  const std::string field_;
  std::vector<std::string>& problems_;
};

// Entries of one issuer share its keys, and one client.
void CheckTogether(const Oidc& oidc, std::vector<std::string>* problems) {
  std::map<std::string, const TokenRule*> first, client;
  for (int i = 0; i < oidc.issuers_size(); ++i) {
    const TokenRule& rule = oidc.issuers(i);
    const TokenRule* other = first.emplace(rule.issuer(), &rule).first->second;
    if (other->ca_file() != rule.ca_file()) {
      problems->push_back(absl::StrCat(
          "oidc.issuers[", i, "].ca_file: must be that of the other entry of this issuer"));
    }
    if (!rule.client_id().empty() && !client.emplace(rule.issuer(), &rule).second) {
      problems->push_back(
          absl::StrCat("oidc.issuers[", i,
                       "].client_id: another entry of this issuer has one; set audiences here"));
    }
  }
}

}  // namespace

void CompleteOidcConfig(auth::v1::Authd* config, std::vector<std::string>* problems) {
  Oidc* oidc = config->mutable_oidc();
  const auto check = [&](bool ok, absl::string_view field, absl::string_view problem) {
    if (!ok) problems->push_back(absl::StrCat("oidc.", field, ": ", problem));
  };
  const bool unix_socket = absl::StartsWith(oidc->listen(), "unix:");
  check(!oidc->listen().empty() && !unix_socket && CheckServerAddress(oidc->listen()).ok(),
        "listen", "must be address:port, such as 0.0.0.0:7080");
  for (const auto& [field, path] :
       {std::pair{"certificate", &oidc->certificate()}, {"key", &oidc->key()}}) {
    check(!path->empty() && CheckAbsolutePath(*path).ok(), field,
          "must be the absolute path of a PEM file");
  }
  check(!oidc->issuers().empty() && oidc->issuers_size() <= kMaxRules, "issuers",
        "must have 1 to 64 entries");
  for (int i = 0; i < oidc->issuers_size(); ++i) {
    RuleChecker rule(oidc->mutable_issuers(i), absl::StrCat("oidc.issuers[", i, "]"), problems);
    rule.Complete(*config);
    rule.Check();
  }
  CheckTogether(*oidc, problems);
}

}  // namespace berth
