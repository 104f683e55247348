#include "clients/authd/oidc/issuer_keys.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/authd/oidc/json.h"
#include "support/fetch/https_client.h"
#include "support/log.h"

namespace berth::oidc {

IssuerKeys::IssuerKeys(std::string issuer, Fetch fetch, Clock& clock)
    : issuer_(std::move(issuer)), fetch_(std::move(fetch)), clock_(clock) {}

absl::StatusOr<KeySet> IssuerKeys::FetchKeys() const {
  const std::string url =
      absl::StrCat(absl::StripSuffix(issuer_, "/"), "/.well-known/openid-configuration");
  const absl::StatusOr<std::string> text = fetch_(url, kMaxDiscoveryBytes);
  if (!text.ok()) return text.status();
  const OwnedJson document = ParseJsonObject(*text);
  if (document == nullptr || TextAt(document.get(), "issuer") != issuer_) {
    return absl::UnavailableError(absl::StrCat(url, " is not the document of this issuer"));
  }
  const std::string keys_url = TextAt(document.get(), "jwks_uri").value_or("");
  if (!IsHttpsUrl(keys_url)) {
    return absl::UnavailableError(absl::StrCat(url, " names no https URL of keys (jwks_uri)"));
  }
  const absl::StatusOr<std::string> keys = fetch_(keys_url, kMaxKeySetBytes);
  if (!keys.ok()) return keys.status();
  absl::StatusOr<KeySet> set = KeySet::Parse(*keys);
  if (!set.ok())
    return absl::UnavailableError(absl::StrCat(keys_url, ": ", set.status().message()));
  return set;
}

bool IssuerKeys::UsableFor(const TokenHint& hint, absl::Duration age) const {
  return keys_ != nullptr && clock_.Steady() - fetched_ < age && keys_->Has(hint);
}

// Without asking the issuer, who was asked already.
absl::StatusOr<std::shared_ptr<const KeySet>> IssuerKeys::Known(const TokenHint& hint) const {
  if (UsableFor(hint, kKeysUsable)) return keys_;
  if (!last_.ok() || keys_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("the keys of the issuer ", issuer_,
                                               " cannot be fetched; try again in a minute"));
  }
  return absl::UnavailableError(
      absl::StrCat("the token is signed with a key that the issuer ", issuer_,
                   " did not have when it was asked last; a new key counts after ",
                   absl::FormatDuration(kFetchAgain)));
}

absl::StatusOr<std::shared_ptr<const KeySet>> IssuerKeys::For(const TokenHint& hint) {
  {
    absl::MutexLock lock(&mutex_);
    if (UsableFor(hint, kKeysFresh)) return keys_;
    if (fetching_) {
      if (UsableFor(hint, kKeysUsable)) return keys_;
      return absl::UnavailableError(
          absl::StrCat("the keys of the issuer ", issuer_, " are being fetched; try again"));
    }
    if (clock_.Steady() - asked_ < kFetchAgain) return Known(hint);
    asked_ = clock_.Steady();
    fetching_ = true;
  }
  absl::StatusOr<KeySet> fetched = FetchKeys();
  if (!fetched.ok()) {
    LogWarn("keys not fetched", {{"issuer", issuer_}, {"error", fetched.status()}});
  }
  absl::MutexLock lock(&mutex_);
  fetching_ = false;
  last_ = fetched.status();
  if (fetched.ok()) {
    LogInfo("keys", {{"issuer", issuer_}, {"count", fetched->size()}});
    keys_ = std::make_shared<const KeySet>(*std::move(fetched));
    fetched_ = clock_.Steady();
  }
  return Known(hint);
}

}  // namespace berth::oidc
