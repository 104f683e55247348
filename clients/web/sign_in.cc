#include "clients/web/sign_in.h"

#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "clients/web/bounds.h"
#include "clients/web/sessions.h"
#include "clients/web/web_config.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/certificate.h"
#include "support/pki/issuer.h"
#include "support/text_file.h"

namespace berth::web {
namespace {

constexpr absl::Duration kOfferAge = absl::Minutes(5);
constexpr absl::Duration kOfferAgain = absl::Seconds(5);  // after a failure
constexpr size_t kMaxIssuerAnswer = size_t{256} << 10;

// RFC 7636, 4.2: S256.
std::string ChallengeOf(const std::string& verifier) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(verifier.data()), verifier.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return std::string(absl::StripSuffix(absl::WebSafeBase64Escape(hash), "="));
}

absl::Status IssuerError(const auth::v1::LoginOffer::Issuer& issuer, absl::StatusCode code,
                         absl::string_view what) {
  return absl::Status(code, absl::StrCat("the issuer ", issuer.issuer(), ": ", what));
}

absl::StatusOr<SpiffeId> UserOf(const CertificateNames& names, const std::string& trust_domain) {
  const absl::Status none =
      absl::PermissionDeniedError("the certificate does not carry an identity of a user of Berth");
  if (names.uris.size() != 1) return none;
  absl::StatusOr<SpiffeId> id = ParseSpiffeId(names.uris[0]);
  const bool is_user =
      id.ok() && id->kind == SpiffeId::Kind::kUser && id->trust_domain == trust_domain;
  if (!is_user) return none;
  return id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SignIn>> SignIn::Open(const v1::Web& config, Ask ask) {
  absl::StatusOr<std::string> servers = ReadConfiguredFile(config.ca());
  if (!servers.ok()) return servers.status();
  std::unique_ptr<SignIn> made(new SignIn(config, std::move(ask), *std::move(servers)));
  if (!config.has_certificates()) return made;
  const v1::WebCertificates& files = config.certificates();
  absl::StatusOr<std::string> clients = ReadConfiguredFile(files.ca());
  if (!clients.ok()) return clients.status();
  const absl::StatusOr<std::string> certificate = ReadConfiguredFile(files.authority());
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = ReadConfiguredFile(files.authority_key());
  if (!key.ok()) return key.status();
  absl::StatusOr<Authority> authority = Authority::Open(*certificate, *key, absl::Now());
  if (!authority.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.authority(), ": ", authority.status().message()));
  }
  made->client_authority_ = *std::move(clients);
  made->authority_ = *std::move(authority);
  return made;
}

absl::StatusOr<SignedIn> SignIn::ByToken(const std::string& token) {
  if (token.empty() || token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError("that is not a token");
  }
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  auth::v1::TokenOrder order;
  order.set_token(token);
  order.set_request(made->request);
  const absl::StatusOr<auth::v1::CertificateAnswer> answer =
      OrderCertificate(authd(), kCertificatePath, order, "", ask_);
  if (!answer.ok()) return answer.status();
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(answer->certificate());
  if (!names.ok()) return absl::UnavailableError("berth-authd's certificate does not parse");
  return SignedIn{
      .user = names->common_name,
      .end = names->not_after,
      .identity = {.certificate = answer->certificate(), .key = made->key, .servers = servers_}};
}

absl::StatusOr<SignedIn> SignIn::ByCertificate(const std::string& certificate, absl::Time now) {
  if (certificate.empty()) return absl::PermissionDeniedError("the browser shows no certificate");
  if (absl::Status issued = CheckIssuedTo(certificate, client_authority_, now); !issued.ok()) {
    return absl::PermissionDeniedError(issued.message());
  }
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(certificate);
  if (!names.ok()) return absl::PermissionDeniedError(names.status().message());
  const absl::StatusOr<SpiffeId> id = UserOf(*names, config_.certificates().trust_domain());
  if (!id.ok()) return id.status();
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  const absl::Duration lifetime = std::min(names->not_after - now, kCertificateLifetime);
  absl::StatusOr<std::string> pem =
      authority_->Issue(made->request, *id, names->groups, lifetime, now, names->serial);
  if (!pem.ok()) return pem.status();
  return SignedIn{
      .user = id->name,
      .end = now + lifetime,
      .identity = {.certificate = *std::move(pem), .key = made->key, .servers = servers_}};
}

absl::StatusOr<auth::v1::LoginOffer> SignIn::Offer() {
  if (!takes_tokens()) return auth::v1::LoginOffer();
  const absl::Time now = absl::Now();
  {
    absl::MutexLock lock(&mutex_);
    if (now - offered_ < kOfferAge) return offer_;
    offered_ = now;  // others get the one before meanwhile
  }
  absl::StatusOr<auth::v1::LoginOffer> offer = GetLoginOffer(authd(), ask_);
  absl::MutexLock lock(&mutex_);
  if (!offer.ok()) {
    offered_ = now - kOfferAge + kOfferAgain;
    return offer;
  }
  offer_ = *offer;
  offered_ = now;
  return offer;
}

std::vector<std::string> SignIn::Issuers() {
  (void)Offer();  // without an answer: what is known
  return KnownIssuers();
}

std::vector<std::string> SignIn::KnownIssuers() const {
  std::vector<std::string> urls;
  absl::MutexLock lock(&mutex_);
  for (const auto& issuer : offer_.issuers()) urls.push_back(issuer.issuer());
  return urls;
}

absl::StatusOr<auth::v1::IssuerDocument> SignIn::DocumentOf(
    const auth::v1::LoginOffer::Issuer& issuer) {
  HttpsRequest request;
  request.url =
      absl::StrCat(absl::StripSuffix(issuer.issuer(), "/"), "/.well-known/openid-configuration");
  request.most_bytes = kMaxIssuerAnswer;
  const absl::StatusOr<HttpsAnswer> answer = ask_(request, {.file = "", .pem = issuer.authority()});
  if (!answer.ok()) {
    return IssuerError(issuer, absl::StatusCode::kUnavailable, answer.status().message());
  }
  auth::v1::IssuerDocument document;
  if (answer->code != 200 || !ParseJson(answer->body, &document) ||
      document.issuer() != issuer.issuer()) {
    return IssuerError(issuer, absl::StatusCode::kUnavailable,
                       absl::StrCat("its document is not at ", request.url));
  }
  if (!IsHttpsUrl(document.authorization_endpoint()) || !IsHttpsUrl(document.token_endpoint())) {
    return IssuerError(issuer, absl::StatusCode::kFailedPrecondition,
                       "it does not offer the code flow; use a token");
  }
  return document;
}

std::string SignIn::Callback() const {
  return absl::StrCat(OriginsOf(config_).front(), "/api/sign-in/callback");
}

absl::StatusOr<SignIn::Begun> SignIn::Begin(const std::string& issuer, absl::Time now) {
  const absl::StatusOr<auth::v1::LoginOffer> offer = Offer();
  if (!offer.ok()) return offer.status();
  Login login;
  for (const auto& entry : offer->issuers()) {
    if (entry.issuer() == issuer) login.issuer = entry;
  }
  if (login.issuer.issuer().empty()) return absl::NotFoundError("there is no such issuer");
  const absl::StatusOr<auth::v1::IssuerDocument> document = DocumentOf(login.issuer);
  if (!document.ok()) return document.status();
  login.token_endpoint = document->token_endpoint();
  login.secret = NewSecret();
  login.verifier = std::string(absl::StripSuffix(NewSecret(), "="));
  login.end = now + kIssuerLoginTime;
  const std::string state = std::string(absl::StripSuffix(NewSecret(), "="));
  const bool has_query = document->authorization_endpoint().find('?') != std::string::npos;
  const Begun begun{
      .url = absl::StrCat(document->authorization_endpoint(), has_query ? "&" : "?",
                          FormOf({{"response_type", "code"},
                                  {"client_id", login.issuer.client_id()},
                                  {"redirect_uri", Callback()},
                                  {"scope", absl::StrJoin(login.issuer.scopes(), " ")},
                                  {"state", state},
                                  {"code_challenge", ChallengeOf(login.verifier)},
                                  {"code_challenge_method", "S256"}})),
      .secret = login.secret};
  absl::MutexLock lock(&mutex_);
  absl::erase_if(logins_, [&](const auto& entry) { return entry.second.end <= now; });
  if (logins_.size() >= kIssuerLogins) {
    return absl::ResourceExhaustedError("too many sign-ins have begun; try again in a minute");
  }
  logins_[state] = std::move(login);
  return begun;
}

absl::StatusOr<SignIn::Login> SignIn::TakeLogin(const std::string& state, const std::string& secret,
                                                absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = logins_.find(state);
  const bool ours = found != logins_.end() && found->second.end > now &&
                    SecretsEqual(found->second.secret, secret);
  if (!ours) {
    return absl::PermissionDeniedError("this sign-in was not begun in this browser; begin again");
  }
  Login login = std::move(found->second);
  logins_.erase(found);
  return login;
}

absl::StatusOr<std::string> SignIn::TokenFor(const Login& login, const std::string& code) {
  HttpsRequest request;
  request.url = login.token_endpoint;
  request.body = FormOf({{"grant_type", "authorization_code"},
                         {"code", code},
                         {"redirect_uri", Callback()},
                         {"client_id", login.issuer.client_id()},
                         {"code_verifier", login.verifier}});
  request.content_type = kFormType;
  request.most_bytes = kMaxIssuerAnswer;
  const absl::StatusOr<HttpsAnswer> answer =
      ask_(request, {.file = "", .pem = login.issuer.authority()});
  if (!answer.ok()) {
    return IssuerError(login.issuer, absl::StatusCode::kUnavailable, answer.status().message());
  }
  auth::v1::DeviceToken token;
  const bool parsed = ParseJson(answer->body, &token);
  if (parsed && answer->code == 200 && !token.id_token().empty()) return token.id_token();
  return IssuerError(
      login.issuer, absl::StatusCode::kPermissionDenied,
      absl::StrCat("it gives no ID token: ", parsed ? token.error() : "", " ",
                   parsed ? token.error_description() : "", " (code ", answer->code, ")"));
}

absl::StatusOr<SignedIn> SignIn::Finish(const std::string& state, const std::string& code,
                                        const std::string& secret, absl::Time now) {
  const absl::StatusOr<Login> login = TakeLogin(state, secret, now);
  if (!login.ok()) return login.status();
  if (code.empty()) {
    return IssuerError(login->issuer, absl::StatusCode::kPermissionDenied, "it refused");
  }
  const absl::StatusOr<std::string> token = TokenFor(*login, code);
  if (!token.ok()) return token.status();
  return ByToken(*token);
}

}  // namespace berth::web
