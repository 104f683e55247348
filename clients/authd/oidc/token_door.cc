#include "clients/authd/oidc/token_door.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/text_file.h"

namespace berth::oidc {
namespace {

absl::StatusOr<std::string> ReadAuthorities(const std::string& path) {
  if (path.empty()) return "";
  return ReadConfiguredFile(path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenDoor>> TokenDoor::Open(
    const auth::v1::Oidc& config, std::shared_ptr<const CertificateIssuer> issuer,
    const TokenExchange::MakeFetch& make_fetch, Clock& clock) {
  for (const auth::v1::TokenRule& rule : config.issuers()) {
    if (absl::Status read = ReadAuthorities(rule.ca_file()).status(); !read.ok()) return read;
  }
  absl::StatusOr<ServerCertificate> certificate =
      ServerCertificate::Open(config.certificate(), config.key());
  if (!certificate.ok()) return certificate.status();
  std::unique_ptr<TokenDoor> door(new TokenDoor(config, std::move(issuer), make_fetch, clock));
  HttpsServer::Routes routes;
  routes[kLoginPath] = {"GET", [door = door.get()](const HttpsCall&) { return door->Offer(); }};
  routes[kCertificatePath] = {"POST", [door = door.get()](const HttpsCall& call) {
                                return door->Exchange(call.body, call.peer);
                              }};
  absl::StatusOr<std::unique_ptr<HttpsServer>> server =
      HttpsServer::Start(config.listen(), *std::move(certificate), std::move(routes));
  if (!server.ok()) return server.status();
  door->server_ = *std::move(server);
  return door;
}

TokenDoor::TokenDoor(const auth::v1::Oidc& config, std::shared_ptr<const CertificateIssuer> issuer,
                     const TokenExchange::MakeFetch& make_fetch, Clock& clock)
    : config_(config),
      issuer_(std::move(issuer)),
      exchange_(config, make_fetch, clock),
      refusals_(clock) {}

HttpsReply TokenDoor::Offer() const {
  auth::v1::LoginOffer offer;
  for (const auth::v1::TokenRule& rule : config_.issuers()) {
    if (rule.client_id().empty()) continue;
    const absl::StatusOr<std::string> authority = ReadAuthorities(rule.ca_file());
    if (!authority.ok()) {
      LogWarn("issuer not offered", {{"issuer", rule.issuer()}, {"error", authority.status()}});
      continue;
    }
    auth::v1::LoginOffer::Issuer* issuer = offer.add_issuers();
    issuer->set_issuer(rule.issuer());
    issuer->set_client_id(rule.client_id());
    *issuer->mutable_scopes() = rule.scopes();
    issuer->set_authority(*authority);
  }
  return {200, JsonOf(offer)};
}

HttpsReply TokenDoor::Exchange(const std::string& body, const std::string& peer) {
  const absl::StatusOr<auth::v1::CertificateAnswer> answer = Certify(body, peer);
  if (answer.ok()) return {200, JsonOf(*answer)};
  refusals_.Add(answer.status(), peer);
  return RefusalReply(answer.status());
}

absl::StatusOr<auth::v1::CertificateAnswer> TokenDoor::Certify(const std::string& body,
                                                               const std::string& peer) {
  auth::v1::TokenOrder order;
  // The library's message would contain parts of the token.
  if (!google::protobuf::util::JsonStringToMessage(body, &order).ok()) {
    return absl::InvalidArgumentError("the body is not a TokenOrder in JSON");
  }
  const absl::StatusOr<TokenHolder> holder = exchange_.HolderOfToken(order.token());
  if (!holder.ok()) return holder.status();
  absl::StatusOr<IssuedCertificate> issued =
      issuer_->Issue(order.request(), holder->user, holder->groups, holder->lifetime);
  if (!issued.ok()) return issued.status();
  LogInfo("certificate",
          {{"user", holder->user},
           {"issuer", holder->issuer},
           {"subject", holder->subject},
           {"peer", peer},
           {"groups", holder->groups.size()},
           {"serial", issued->serial},
           {"until", absl::FormatTime(absl::RFC3339_sec, issued->end, absl::UTCTimeZone())}});
  auth::v1::CertificateAnswer answer;
  answer.set_certificate(std::move(issued->pem));
  answer.set_servers(issuer_->servers());
  return answer;
}

}  // namespace berth::oidc
