// SignIn: from a proof to a certificate for a session. Blocks; thread-safe.
//
//   token              ──► berth-authd ──► certificate
//   issuer ──► token   ──► berth-authd ──► certificate
//   client certificate ──► our own authority, with its names, end and serial number
#ifndef BERTH_CLIENTS_WEB_SIGN_IN_H_
#define BERTH_CLIENTS_WEB_SIGN_IN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "berth/auth/v1/issuer.pb.h"
#include "berth/web/v1/web.pb.h"
#include "clients/authd_client/ask.h"
#include "clients/authd_client/exchange.h"
#include "clients/web/upstream.h"
#include "support/pki/authority.h"

namespace berth::web {

struct SignedIn {
  std::string user;
  absl::Time end;
  UpstreamIdentity identity;
};

class SignIn {
 public:
  // `config` is completed and has a `ca`. INVALID_ARGUMENT, naming the file. `ask`: AskHttps, or a
  // test's.
  static absl::StatusOr<std::unique_ptr<SignIn>> Open(const v1::Web& config, Ask ask);

  bool takes_tokens() const { return config_.has_authd(); }
  bool takes_certificates() const { return authority_.has_value(); }

  // PERMISSION_DENIED: no certificate for this token, with berth-authd's reason; UNAVAILABLE: not
  // now.
  absl::StatusOr<SignedIn> ByToken(const std::string& token);
  // PEM with its chain, whose key the client has proved to hold. PERMISSION_DENIED: its issuer, its
  // identity, or it has expired.
  absl::StatusOr<SignedIn> ByCertificate(const std::string& certificate, absl::Time now);

  // URLs of issuers where people can sign in; the answer of berth-authd is kept for a while.
  std::vector<std::string> Issuers() ABSL_LOCKS_EXCLUDED(mutex_);
  // What Issuers() answered last, without waiting.
  std::vector<std::string> KnownIssuers() const ABSL_LOCKS_EXCLUDED(mutex_);
  struct Begun {
    std::string url;     // where the browser goes
    std::string secret;  // for its cookie
  };
  // NOT_FOUND: an issuer that is not known.
  absl::StatusOr<Begun> Begin(const std::string& issuer, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The browser is back. PERMISSION_DENIED: it did not begin this, or the issuer refuses.
  absl::StatusOr<SignedIn> Finish(const std::string& state, const std::string& code,
                                  const std::string& secret, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Login {
    std::string secret;
    std::string verifier;  // RFC 7636
    auth::v1::LoginOffer::Issuer issuer;
    std::string token_endpoint;
    absl::Time end;
  };

  SignIn(const v1::Web& config, Ask ask, std::string servers)
      : config_(config), ask_(std::move(ask)), servers_(std::move(servers)) {}
  AuthdServer authd() const { return {config_.authd().url(), config_.authd().ca_file()}; }
  absl::StatusOr<auth::v1::LoginOffer> Offer() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<auth::v1::IssuerDocument> DocumentOf(const auth::v1::LoginOffer::Issuer& issuer);
  absl::StatusOr<Login> TakeLogin(const std::string& state, const std::string& secret,
                                  absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> TokenFor(const Login& login, const std::string& code);
  std::string Callback() const;

  const v1::Web config_;
  const Ask ask_;
  const std::string servers_;     // PEM: the authority of berthd
  std::string client_authority_;  // PEM: whose certificates of clients count
  std::optional<Authority> authority_;
  mutable absl::Mutex mutex_;
  auth::v1::LoginOffer offer_ ABSL_GUARDED_BY(mutex_);
  absl::Time offered_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::flat_hash_map<std::string, Login> logins_ ABSL_GUARDED_BY(mutex_);  // by state
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_SIGN_IN_H_
