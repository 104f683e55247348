// Certificates from berth-authd of another machine, over HTTPS.
#ifndef BERTH_CLIENTS_LOGIN_LOGIN_H_
#define BERTH_CLIENTS_LOGIN_LOGIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/authd_client/exchange.h"
#include "clients/cpp/kept_certificate.h"
#include "clients/cpp/retry.h"

namespace berth {

struct NewLogin {
  std::string user;
  std::vector<std::string> groups;
  absl::Time end;
};

// A certificate for the holder of the token, kept in `files`. Tries again for `patience` while
// berth-authd asks for it. PERMISSION_DENIED: no certificate for this token, with the reason;
// UNAVAILABLE: not now.
absl::StatusOr<NewLogin> ExchangeToken(const AuthdServer& server, const std::string& token,
                                       const TlsFiles& files, absl::Duration patience,
                                       const Ask& ask, const ClientEnvironment& environment);

}  // namespace berth

#endif  // BERTH_CLIENTS_LOGIN_LOGIN_H_
