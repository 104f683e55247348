// Certificates from berth-authd of another machine, over HTTPS.
#ifndef BERTH_CLIENTS_LOGIN_LOGIN_H_
#define BERTH_CLIENTS_LOGIN_LOGIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/cpp/kept_certificate.h"
#include "clients/cpp/retry.h"
#include "clients/login/ask.h"

namespace berth {

struct LoginServer {
  std::string url;      // "https://login.example:7080"
  std::string ca_file;  // PEM: signs its certificate; "" = the system's authorities
};

// Messages begin with "berth-authd". INVALID_ARGUMENT: the URL or the file; UNAVAILABLE: no answer.
absl::StatusOr<auth::v1::LoginOffer> GetLoginOffer(const LoginServer& server, const Ask& ask);

struct NewLogin {
  std::string user;
  std::vector<std::string> groups;
  absl::Time end;
};

// A certificate for the holder of the token, kept in `files`. Tries again for `patience` while
// berth-authd asks for it. PERMISSION_DENIED: no certificate for this token, with the reason;
// UNAVAILABLE: not now.
absl::StatusOr<NewLogin> ExchangeToken(const LoginServer& server, const std::string& token,
                                       const TlsFiles& files, absl::Duration patience,
                                       const Ask& ask, const ClientEnvironment& environment);

// The files of the login in a directory of certificates: one at a time.
TlsFiles LoginFiles(const std::string& directory);

}  // namespace berth

#endif  // BERTH_CLIENTS_LOGIN_LOGIN_H_
