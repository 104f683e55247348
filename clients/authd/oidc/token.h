// The form of a token: a JWT signed by one key, in compact form (RFC 7515, 7519).
#ifndef BERTH_CLIENTS_AUTHD_OIDC_TOKEN_H_
#define BERTH_CLIENTS_AUTHD_OIDC_TOKEN_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/pki/auth_protocol.h"

namespace berth::oidc {

inline constexpr size_t kMaxKeyIdBytes = 256;

// Signatures by a private key. Everything else is refused: "none", and HS256 and its like, for
// which a public key could be taken as the secret.
bool IsTokenAlgorithm(absl::string_view name);

// Bytes in base64url without padding (RFC 4648, 5). libcjose must get no other text: for some it
// calls abort().
bool IsBase64Url(absl::string_view text);

// In quotes, for a message; only the beginning of a long text.
std::string QuotedBriefly(absl::string_view text);

// What the token says before its signature is checked: only to choose the key.
struct TokenHint {
  std::string algorithm;
  std::string key_id;  // "" = not given
  std::string issuer;
};

// INVALID_ARGUMENT: not such a token; the message contains nothing of it but the algorithm.
absl::StatusOr<TokenHint> ReadTokenHint(absl::string_view token);

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_TOKEN_H_
