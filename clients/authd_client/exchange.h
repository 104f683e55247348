// Calls of berth-authd over HTTPS (proto/berth/auth/v1): of people who log in, and of agents.
#ifndef BERTH_CLIENTS_AUTHD_CLIENT_EXCHANGE_H_
#define BERTH_CLIENTS_AUTHD_CLIENT_EXCHANGE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd_client/ask.h"

namespace berth {

struct AuthdServer {
  std::string url;      // "https://login.example:7080"
  std::string ca_file;  // PEM: signs its certificate; "" = the system's authorities
};

// "berth-authd at URL: WHAT"; all errors below are like that. INVALID_ARGUMENT: the URL or the file
// of authorities; UNAVAILABLE: no answer, or one that berth-authd did not write.
absl::Status AuthdError(absl::StatusCode code, const AuthdServer& server, absl::string_view what);

absl::StatusOr<auth::v1::LoginOffer> GetLoginOffer(const AuthdServer& server, const Ask& ask);

// Sends a TokenOrder or NodeOrder, once. `client_file`: HttpsRequest's. PERMISSION_DENIED: no
// certificate, with berth-authd's reason; UNAVAILABLE also: not now. Then `again` says whether
// berth-authd asks for another attempt.
absl::StatusOr<auth::v1::CertificateAnswer> OrderCertificate(const AuthdServer& server,
                                                             const char* path,
                                                             const google::protobuf::Message& order,
                                                             const std::string& client_file,
                                                             const Ask& ask, bool* again = nullptr);

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_CLIENT_EXCHANGE_H_
