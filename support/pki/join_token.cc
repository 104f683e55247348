#include "support/pki/join_token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr char kBegin[] = "berth-join.";
constexpr size_t kIdBytes = 8, kIdDigits = 2 * kIdBytes;
constexpr size_t kSecretBytes = 32, kSecretDigits = 43;  // base64url without padding

bool IsIdDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
}
bool IsSecretDigit(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1) {
    return bytes;
  }
  return absl::UnavailableError("the system has no random numbers now");
}

}  // namespace

absl::StatusOr<NewJoinToken> MakeJoinToken() {
  const absl::StatusOr<std::string> id = RandomBytes(kIdBytes);
  if (!id.ok()) return id.status();
  const absl::StatusOr<std::string> bytes = RandomBytes(kSecretBytes);
  if (!bytes.ok()) return bytes.status();
  const std::string secret = absl::WebSafeBase64Escape(*bytes);
  NewJoinToken token;
  token.key = {.id = absl::BytesToHexString(*id), .secret_hash = Sha256(secret)};
  token.text = absl::StrCat(kBegin, token.key.id, ".", secret);
  return token;
}

absl::StatusOr<JoinTokenKey> ReadJoinToken(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "this is not a join token: it begins with berth-join. and has "
      "an id and a secret (berth node token create)");
  if (!absl::ConsumePrefix(&text, kBegin)) return wrong;
  if (text.size() != kIdDigits + 1 + kSecretDigits || text[kIdDigits] != '.') return wrong;
  const absl::string_view id = text.substr(0, kIdDigits), secret = text.substr(kIdDigits + 1);
  if (!std::all_of(id.begin(), id.end(), IsIdDigit) ||
      !std::all_of(secret.begin(), secret.end(), IsSecretDigit)) {
    return wrong;
  }
  return JoinTokenKey{.id = std::string(id), .secret_hash = Sha256(secret)};
}

bool SameHash(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Sha256(absl::string_view text) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

}  // namespace berth
