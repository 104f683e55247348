// The text of a join token, "berth-join.ID.SECRET": what an operator gives to the agents of new
// nodes. The server keeps the id, and the hash of the secret.
#ifndef BERTH_SUPPORT_PKI_JOIN_TOKEN_H_
#define BERTH_SUPPORT_PKI_JOIN_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

struct JoinTokenKey {
  std::string id;           // 16 lower-case hexadecimal digits
  std::string secret_hash;  // SHA-256 of the secret's text: 32 bytes
  bool operator==(const JoinTokenKey&) const = default;
};

struct NewJoinToken {
  JoinTokenKey key;
  std::string text;
};

inline constexpr size_t kMaxJoinTokenBytes = 128;

// With a secret of 32 random bytes. UNAVAILABLE: the system gives none.
absl::StatusOr<NewJoinToken> MakeJoinToken();

// INVALID_ARGUMENT: not the text of a token. The message does not contain it.
absl::StatusOr<JoinTokenKey> ReadJoinToken(absl::string_view text);

// Takes the same time wherever they differ.
bool SameHash(absl::string_view a, absl::string_view b);

// 32 bytes.
std::string Sha256(absl::string_view text);

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_JOIN_TOKEN_H_
