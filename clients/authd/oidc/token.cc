#include "clients/authd/oidc/token.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/authd/oidc/json.h"
#include "support/utf8.h"

namespace berth::oidc {
namespace {

// Those of libcjose, which has no EdDSA.
constexpr std::array<absl::string_view, 9> kAlgorithms = {
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"};
constexpr size_t kMaxShownBytes = 200;

OwnedJson DecodedObject(absl::string_view part) {
  std::string text;
  if (!absl::WebSafeBase64Unescape(part, &text)) return nullptr;
  return ParseJsonObject(text);
}

absl::Status CheckAlgorithm(const std::optional<std::string>& name) {
  if (!name.has_value()) return absl::InvalidArgumentError("the token names no algorithm");
  if (IsTokenAlgorithm(*name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the token's algorithm ", QuotedBriefly(*name),
                                                 " is not accepted; accepted are ",
                                                 absl::StrJoin(kAlgorithms, ", ")));
}

absl::Status CheckHeader(const json_t* header) {
  if (absl::Status status = CheckAlgorithm(TextAt(header, "alg")); !status.ok()) return status;
  if (json_object_get(header, "crit") != nullptr) {  // RFC 7515, 4.1.11
    return absl::InvalidArgumentError(
        "the token asks for extensions that berth-authd does not have (crit)");
  }
  const json_t* type = json_object_get(header, "typ");
  if (type != nullptr && !absl::EqualsIgnoreCase(TextOf(type).value_or(""), "JWT")) {
    return absl::InvalidArgumentError(
        "the token is not an identity token: its type (typ) is not JWT");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> KeyIdOf(const json_t* header) {
  const json_t* value = json_object_get(header, "kid");
  if (value == nullptr) return "";
  std::optional<std::string> text = TextOf(value);
  if (text.has_value() && !text->empty() && text->size() <= kMaxKeyIdBytes) return *text;
  return absl::InvalidArgumentError("the token's key id (kid) is not a text of 1 to 256 bytes");
}

}  // namespace

bool IsBase64Url(absl::string_view text) {
  return !text.empty() && text.size() % 4 != 1 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

std::string QuotedBriefly(absl::string_view text) {
  return absl::StrCat("\"", SanitizedUtf8(text, kMaxShownBytes), "\"");
}

bool IsTokenAlgorithm(absl::string_view name) {
  return std::find(kAlgorithms.begin(), kAlgorithms.end(), name) != kAlgorithms.end();
}

absl::StatusOr<TokenHint> ReadTokenHint(absl::string_view token) {
  if (token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token has more than ", kMaxTokenBytes, " bytes"));
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(token, '.');
  // The third one is the signature: empty with the algorithm "none", which has a message of its
  // own.
  const bool form = parts.size() == 3 && IsBase64Url(parts[0]) && IsBase64Url(parts[1]);
  const OwnedJson header = form ? DecodedObject(parts[0]) : nullptr;
  if (header == nullptr) return absl::InvalidArgumentError("this is not a signed JWT");
  if (absl::Status status = CheckHeader(header.get()); !status.ok()) return status;
  absl::StatusOr<std::string> key_id = KeyIdOf(header.get());
  if (!key_id.ok()) return key_id.status();
  const OwnedJson claims = IsBase64Url(parts[2]) ? DecodedObject(parts[1]) : nullptr;
  if (claims == nullptr) return absl::InvalidArgumentError("this is not a signed JWT with claims");
  std::optional<std::string> issuer = TextAt(claims.get(), "iss");
  if (!issuer.has_value()) return absl::InvalidArgumentError("the token names no issuer (iss)");
  return TokenHint{.algorithm = *TextAt(header.get(), "alg"),
                   .key_id = *std::move(key_id),
                   .issuer = *std::move(issuer)};
}

}  // namespace berth::oidc
