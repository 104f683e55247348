#include "clients/authd/oidc/keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

extern "C" {
#include <cjose/cjose.h>
}
#include <openssl/err.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/authd/oidc/json.h"

namespace berth::oidc {
namespace {

constexpr size_t kLeastRsaBits = 2048, kMostRsaBits = 8192;
// Of base64.
constexpr size_t kMostModulusChars = kMostRsaBits / 6 + 4;
constexpr size_t kMostExponentChars = 12;
constexpr size_t kMostPointChars = 88;  // of P-521

struct KeyFreer {
  void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
};
using OwnedJwk = std::unique_ptr<cjose_jwk_t, KeyFreer>;

struct Curve {
  absl::string_view name;
  absl::string_view algorithm;
};
constexpr std::array<Curve, 3> kCurves = {
    {{"P-256", "ES256"}, {"P-384", "ES384"}, {"P-521", "ES512"}}};

// The public members of a key. A JWKS should have no others; they are not even parsed.
OwnedJson PublicPart(const json_t* jwk, absl::string_view type) {
  OwnedJson part(json_object());
  json_object_set(part.get(), "kty", json_object_get(jwk, "kty"));
  const auto copy = [&](const char* name) {
    json_object_set(part.get(), name, json_object_get(jwk, name));
  };
  if (type == "RSA") {
    copy("n");
    copy("e");
  } else {
    copy("crv");
    copy("x");
    copy("y");
  }
  return part;
}

bool IsForSignatures(const json_t* jwk) {
  const json_t* use = json_object_get(jwk, "use");
  if (use != nullptr && TextOf(use) != "sig") return false;
  const json_t* operations = json_object_get(jwk, "key_ops");
  if (operations == nullptr) return true;
  for (size_t i = 0; i < json_array_size(operations); ++i) {
    if (TextOf(json_array_get(operations, i)) == "verify") return true;
  }
  return false;
}

bool IsBase64UrlAt(const json_t* jwk, const char* name, size_t most_chars) {
  const std::optional<std::string> text = TextAt(jwk, name);
  return text.has_value() && text->size() <= most_chars && IsBase64Url(*text);
}

// What libcjose can take. Large numbers would make checks slow.
bool IsSane(const json_t* jwk, absl::string_view type) {
  if (type == "EC") {
    return IsBase64UrlAt(jwk, "x", kMostPointChars) && IsBase64UrlAt(jwk, "y", kMostPointChars);
  }
  return IsBase64UrlAt(jwk, "n", kMostModulusChars) && IsBase64UrlAt(jwk, "e", kMostExponentChars);
}

}  // namespace

struct KeySet::Key {
  std::string id;
  std::string algorithm;  // the only one; "" = all of RSA
  OwnedJwk jwk;

  // nullopt: not a key for tokens.
  static std::optional<Key> From(const json_t* jwk);

  bool IsFor(absl::string_view wanted) const {
    if (!algorithm.empty()) return wanted == algorithm;
    return absl::StartsWith(wanted, "RS") || absl::StartsWith(wanted, "PS");
  }
};

std::optional<KeySet::Key> KeySet::Key::From(const json_t* jwk) {
  const std::string type = TextAt(jwk, "kty").value_or("");
  if ((type != "RSA" && type != "EC") || !IsForSignatures(jwk) || !IsSane(jwk, type)) return {};
  Key key{.id = TextAt(jwk, "kid").value_or(""), .algorithm = "", .jwk = nullptr};
  if (key.id.size() > kMaxKeyIdBytes) return {};
  if (type == "EC") {
    const std::string name = TextAt(jwk, "crv").value_or("");
    const auto* curve = std::find_if(kCurves.begin(), kCurves.end(),
                                     [&](const Curve& each) { return each.name == name; });
    if (curve == kCurves.end()) return {};
    key.algorithm = std::string(curve->algorithm);
  }
  if (const json_t* named = json_object_get(jwk, "alg"); named != nullptr) {
    const std::string algorithm = TextOf(named).value_or("");
    if (!IsTokenAlgorithm(algorithm) || !key.IsFor(algorithm)) return {};
    key.algorithm = algorithm;
  }
  const OwnedJson part = PublicPart(jwk, type);
  cjose_err error{};
  key.jwk.reset(cjose_jwk_import_json(part.get(), &error));
  ERR_clear_error();
  if (key.jwk == nullptr) return {};
  if (type == "RSA") {
    const size_t bits = cjose_jwk_get_keysize(key.jwk.get(), &error);
    if (bits < kLeastRsaBits || bits > kMostRsaBits) return {};
  }
  return key;
}

KeySet::KeySet(std::vector<Key> keys) : keys_(std::move(keys)) {}
KeySet::KeySet(KeySet&&) noexcept = default;
KeySet& KeySet::operator=(KeySet&&) noexcept = default;
KeySet::~KeySet() = default;

size_t KeySet::size() const { return keys_.size(); }

absl::StatusOr<KeySet> KeySet::Parse(absl::string_view json) {
  if (json.size() > kMaxKeySetBytes) return absl::InvalidArgumentError("the key set is too large");
  const OwnedJson set = ParseJsonObject(json);
  const json_t* list = json_object_get(set.get(), "keys");
  if (!json_is_array(list)) return absl::InvalidArgumentError("not a JSON Web Key Set");
  if (json_array_size(list) > kMaxKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key set has more than ", kMaxKeys, " keys"));
  }
  std::vector<Key> keys;
  for (size_t i = 0; i < json_array_size(list); ++i) {
    std::optional<Key> key = Key::From(json_array_get(list, i));
    if (key.has_value()) keys.push_back(*std::move(key));
  }
  return KeySet(std::move(keys));
}

const KeySet::Key* KeySet::Find(const TokenHint& hint) const {
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    if (!key.IsFor(hint.algorithm) || (!hint.key_id.empty() && key.id != hint.key_id)) continue;
    if (found != nullptr) return nullptr;  // it is not clear which
    found = &key;
  }
  return found;
}

bool KeySet::Has(const TokenHint& hint) const { return Find(hint) != nullptr; }

absl::StatusOr<std::string> KeySet::Verify(absl::string_view token, const TokenHint& hint) const {
  const Key* key = Find(hint);
  if (key == nullptr) {
    return absl::NotFoundError("the token is signed with a key that the issuer does not have");
  }
  const absl::Cleanup forget_errors = [] { ERR_clear_error(); };
  cjose_err error{};
  cjose_jws_t* jws = cjose_jws_import(token.data(), token.size(), &error);
  if (jws == nullptr) return absl::InvalidArgumentError("this is not a signed JWT");
  const absl::Cleanup release = [jws] { cjose_jws_release(jws); };
  // What is verified is what was looked at.
  const char* algorithm = cjose_header_get(cjose_jws_get_protected(jws), CJOSE_HDR_ALG, &error);
  if (algorithm == nullptr || algorithm != hint.algorithm) {
    return absl::InvalidArgumentError("this is not a signed JWT");
  }
  if (!cjose_jws_verify(jws, key->jwk.get(), &error)) {
    return absl::PermissionDeniedError("the token's signature is not valid");
  }
  uint8_t* text = nullptr;
  size_t size = 0;
  if (!cjose_jws_get_plaintext(jws, &text, &size, &error)) {
    return absl::InvalidArgumentError("this is not a signed JWT");
  }
  return std::string(reinterpret_cast<const char*>(text), size);
}

}  // namespace berth::oidc
