// The public keys of an issuer (JWKS, RFC 7517), and signatures by them.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_KEYS_H_
#define BERTH_CLIENTS_AUTHD_OIDC_KEYS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/authd/oidc/token.h"

namespace berth::oidc {

inline constexpr size_t kMaxKeySetBytes = size_t{1} << 20;
inline constexpr size_t kMaxKeys = 100;

// Immutable; thread-safe.
class KeySet {
 public:
  // Keys for other purposes and of other kinds are left out, so are RSA keys below 2048 and above
  // 8192 bits; private parts are not looked at. INVALID_ARGUMENT: not a key set, or more than
  // kMaxKeys.
  static absl::StatusOr<KeySet> Parse(absl::string_view json);
  KeySet(KeySet&&) noexcept;
  KeySet& operator=(KeySet&&) noexcept;
  ~KeySet();

  size_t size() const;
  // Whether a key has this id and is one for this algorithm. Without an id: whether exactly one key
  // is for this algorithm.
  bool Has(const TokenHint& hint) const;
  // The claims of the token, whose signature is valid. `hint` is that of the token. NOT_FOUND: Has
  // is false; PERMISSION_DENIED: the signature is not that of the key.
  absl::StatusOr<std::string> Verify(absl::string_view token, const TokenHint& hint) const;

 private:
  struct Key;
  explicit KeySet(std::vector<Key> keys);
  const Key* Find(const TokenHint& hint) const;

  std::vector<Key> keys_;
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_KEYS_H_
