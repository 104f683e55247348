// TokenDoor: certificates over HTTPS, for holders of tokens (proto/berth/auth/v1).
#ifndef BERTH_CLIENTS_AUTHD_OIDC_TOKEN_DOOR_H_
#define BERTH_CLIENTS_AUTHD_OIDC_TOKEN_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd/issuing.h"
#include "clients/authd/oidc/exchange.h"
#include "clients/authd/oidc/https_server.h"
#include "clients/authd/oidc/json_reply.h"
#include "support/clock.h"

namespace berth::oidc {

class TokenDoor {
 public:
  // Listens. `config` is completed (authd_config.h). INVALID_ARGUMENT: a file; UNAVAILABLE: the
  // address.
  static absl::StatusOr<std::unique_ptr<TokenDoor>> Open(
      const auth::v1::Oidc& config, std::shared_ptr<const CertificateIssuer> issuer,
      const TokenExchange::MakeFetch& make_fetch, Clock& clock);

  int port() const { return server_->port(); }

 private:
  TokenDoor(const auth::v1::Oidc& config, std::shared_ptr<const CertificateIssuer> issuer,
            const TokenExchange::MakeFetch& make_fetch, Clock& clock);

  HttpsReply Offer() const;
  HttpsReply Exchange(const std::string& body, const std::string& peer);
  absl::StatusOr<auth::v1::CertificateAnswer> Certify(const std::string& body,
                                                      const std::string& peer);

  const auth::v1::Oidc config_;
  const std::shared_ptr<const CertificateIssuer> issuer_;
  TokenExchange exchange_;
  RefusalLog refusals_;
  std::unique_ptr<HttpsServer> server_;  // last: its threads use the others
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_TOKEN_DOOR_H_
