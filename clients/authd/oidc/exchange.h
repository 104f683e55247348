// TokenExchange: from a token to the user it proves.
//
//   token -> form, algorithm -> issuer -> its key -> signature -> claims by the configuration's
//   rules -> user, groups
#ifndef BERTH_CLIENTS_AUTHD_OIDC_EXCHANGE_H_
#define BERTH_CLIENTS_AUTHD_OIDC_EXCHANGE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd/oidc/claims.h"
#include "clients/authd/oidc/issuer_keys.h"
#include "support/clock.h"

namespace berth::oidc {

// A Fetch for the issuer of this rule: over HTTPS, trusting the rule's authorities.
Fetch FetchFor(const auth::v1::TokenRule& rule);

// Thread-safe.
class TokenExchange {
 public:
  using MakeFetch = std::function<Fetch(const auth::v1::TokenRule&)>;

  // `config` is completed (oidc_config.h); `clock` must outlive this.
  TokenExchange(auth::v1::Oidc config, const MakeFetch& make_fetch, Clock& clock);
  TokenExchange(const TokenExchange&) = delete;
  TokenExchange& operator=(const TokenExchange&) = delete;

  // INVALID_ARGUMENT and PERMISSION_DENIED: it gives no certificate; UNAVAILABLE: try again. The
  // messages are for the holder of the token and do not contain it.
  absl::StatusOr<TokenHolder> HolderOfToken(absl::string_view token);

 private:
  struct Issuer {
    std::vector<const auth::v1::TokenRule*> rules;  // of config_, in order
    std::unique_ptr<IssuerKeys> keys;
  };

  const auth::v1::Oidc config_;
  Clock& clock_;
  std::map<std::string, Issuer> issuers_;
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_EXCHANGE_H_
