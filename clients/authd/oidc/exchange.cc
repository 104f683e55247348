#include "clients/authd/oidc/exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "support/fetch/https_client.h"

namespace berth::oidc {
Fetch FetchFor(const auth::v1::TokenRule& rule) {
  return [trust = HttpsTrust{.file = rule.ca_file(), .pem = ""}](
             const std::string& url, size_t most_bytes) -> absl::StatusOr<std::string> {
    HttpsRequest request;
    request.url = url;
    request.most_bytes = most_bytes;
    request.patience = absl::Seconds(5);  // an issuer's document and its keys: 10
    absl::StatusOr<HttpsAnswer> answer = AskHttps(request, trust);
    if (!answer.ok()) return answer.status();
    if (answer->code == 200) return std::move(answer->body);
    return absl::UnavailableError(absl::StrCat(url, " answers with code ", answer->code));
  };
}

TokenExchange::TokenExchange(auth::v1::Oidc config, const MakeFetch& make_fetch, Clock& clock)
    : config_(std::move(config)), clock_(clock) {
  for (const auth::v1::TokenRule& rule : config_.issuers()) {
    Issuer& issuer = issuers_[rule.issuer()];
    issuer.rules.push_back(&rule);
    if (issuer.keys != nullptr) continue;
    issuer.keys = std::make_unique<IssuerKeys>(rule.issuer(), make_fetch(rule), clock);
  }
}

absl::StatusOr<TokenHolder> TokenExchange::HolderOfToken(absl::string_view token) {
  const absl::StatusOr<TokenHint> hint = ReadTokenHint(token);
  if (!hint.ok()) return hint.status();
  const auto issuer = issuers_.find(hint->issuer);
  if (issuer == issuers_.end()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the token's issuer ", QuotedBriefly(hint->issuer), " is not one that berth-authd trusts"));
  }
  const absl::StatusOr<std::shared_ptr<const KeySet>> keys = issuer->second.keys->For(*hint);
  if (!keys.ok()) return keys.status();
  const absl::StatusOr<std::string> claims = (*keys)->Verify(token, *hint);
  if (!claims.ok()) return claims.status();
  return HolderOf(*claims, issuer->second.rules, clock_.Now());
}

}  // namespace berth::oidc
