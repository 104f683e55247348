// Tokens, key sets of issuers and claims: the first byte chooses which.
#include "clients/authd/oidc/token.h"

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/authd/oidc/claims.h"
#include "clients/authd/oidc/keys.h"
#include "core/access/access.h"
#include "core/base/check.h"
#include "support/pki/certificate.h"
#include "support/proto_time.h"
#include "tests/fuzz/target.h"
#include "tests/unit/authd/signed_tokens.h"

namespace berth::fuzz {
namespace {

using oidc::KeySet;
using oidc::SigningKey;
using oidc::TokenHint;

// Its private part is in no input, so nothing that arrives is signed with it.
const SigningKey& OurKey() {
  static const SigningKey key = SigningKey::Ec("k");
  return key;
}

void CheckToken(absl::string_view token) {
  static const KeySet keys =
      KeySet::Parse(absl::StrCat(R"({"keys":[)", OurKey().Json(), "]}")).value();
  const absl::StatusOr<TokenHint> hint = oidc::ReadTokenHint(token);
  if (!hint.ok()) return;
  BERTH_CHECK(token.size() <= kMaxTokenBytes);
  BERTH_CHECK(oidc::IsTokenAlgorithm(hint->algorithm));
  BERTH_CHECK(hint->key_id.size() <= oidc::kMaxKeyIdBytes);
  BERTH_CHECK(!keys.Verify(token, *hint).ok());
  // Whatever the token says about its key: with ours, it is not valid.
  TokenHint other = *hint;
  other.algorithm = "ES256";
  other.key_id = "k";
  BERTH_CHECK(!keys.Verify(token, other).ok());
}

void CheckKeys(absl::string_view json) {
  static const std::string token = OurKey().Sign("ES256", R"({"iss":"https://a"})");
  const absl::StatusOr<KeySet> keys = KeySet::Parse(json);
  if (!keys.ok()) return;
  BERTH_CHECK(keys->size() <= oidc::kMaxKeys);
  const TokenHint hint = oidc::ReadTokenHint(token).value();
  BERTH_CHECK(!keys->Verify(token, hint).ok());
  for (const char* algorithm : {"ES256", "RS256", "PS512"}) {
    for (const char* id : {"", "k", "1"}) {
      BERTH_CHECK(!keys->Verify(token, {algorithm, id, hint.issuer}).ok());
    }
  }
}

auth::v1::TokenRule Rule(const std::string& audience) {
  auth::v1::TokenRule rule;
  rule.set_issuer("https://a");
  rule.add_audiences(audience);
  ToProto(absl::Hours(1), rule.mutable_max_token_age());
  ToProto(absl::Hours(12), rule.mutable_lifetime());
  return rule;
}

void CheckClaims(absl::string_view claims) {
  static const auth::v1::TokenRule person = [] {
    auth::v1::TokenRule rule = Rule("p");
    rule.set_user_claim("name");
    rule.set_groups_claim("groups");
    rule.set_group_prefix("g-");
    return rule;
  }();
  static const auth::v1::TokenRule job = [] {
    auth::v1::TokenRule rule = Rule("j");
    (*rule.mutable_required_claims())["repository"] = "r";
    rule.set_user("ci");
    rule.add_groups("g-ci");
    return rule;
  }();
  static const auth::v1::TokenRule* const rules[] = {&person, &job};
  const absl::StatusOr<oidc::TokenHolder> holder =
      oidc::HolderOf(claims, rules, absl::FromUnixSeconds(1'000'000));
  if (!holder.ok()) return;
  BERTH_CHECK(holder->issuer == "https://a");
  BERTH_CHECK(!holder->subject.empty() && holder->subject.size() <= 255);
  BERTH_CHECK(IsAccessName(holder->user) && CanBeInCertificate(holder->user));
  BERTH_CHECK(holder->user != "root");
  BERTH_CHECK(holder->groups.size() <= kMaxCertificateGroups);
  BERTH_CHECK(std::set<std::string>(holder->groups.begin(), holder->groups.end()).size() ==
              holder->groups.size());
  for (const std::string& group : holder->groups) {
    BERTH_CHECK(IsAccessName(group) && CanBeInCertificate(group) && group.rfind("g-", 0) == 0);
  }
}

}  // namespace

void FuzzOne(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view rest = input.substr(1);
  switch (input[0]) {
    case 't':
      return CheckToken(rest);
    case 'k':
      return CheckKeys(rest);
    default:
      return CheckClaims(rest);
  }
}

}  // namespace berth::fuzz
