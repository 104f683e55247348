// What the claims of a token say, by the rules of the configuration (RFC 7519, OpenID Connect).
// Pure: the signature was checked before.
//
//   {"iss": "https://sso.example", "aud": "berth", "preferred_username": "ada", "groups": ["ml"],
//   ...} with {userClaim: preferred_username, groupsClaim: groups}   ->   user ada, group ml
#ifndef BERTH_CLIENTS_AUTHD_OIDC_CLAIMS_H_
#define BERTH_CLIENTS_AUTHD_OIDC_CLAIMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "berth/auth/v1/auth.pb.h"

namespace berth::oidc {

inline constexpr absl::Duration kTokenSkew =
    absl::Minutes(1);                      // between our clock and the issuer's
inline constexpr int kMaxAudiences = 100;  // of a token

struct TokenHolder {
  std::string user;
  std::vector<std::string> groups;  // without repetitions
  std::string issuer;
  std::string subject;
  absl::Duration lifetime;  // of the certificate
};

// `rules` are those of the token's issuer, completed. INVALID_ARGUMENT: the claims are not those of
// a token; PERMISSION_DENIED: a token that gives no certificate. The message says why, and none of
// the values that the rules require. Groups that no certificate can carry are left out.
absl::StatusOr<TokenHolder> HolderOf(absl::string_view claims,
                                     absl::Span<const auth::v1::TokenRule* const> rules,
                                     absl::Time now);

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_CLAIMS_H_
