// Who calls: the certificate that a client shows, and the client with it. For `berth` and the
// Slurm commands, which take the same variables of the environment.
#ifndef BERTH_CLIENTS_SESSION_IDENTITY_H_
#define BERTH_CLIENTS_SESSION_IDENTITY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace berth {

struct ConnectionOptions {
  ClientOptions client;
  // Of berth-authd. Empty: the usual one, if it exists and the server is not on loopback; "off":
  // none.
  std::string auth_socket;
  // Of berth-authd on another machine. A login is used unless the server is on loopback; with this
  // also then.
  std::string auth;
};

// Without TLS files of its own, a certificate of berth-authd: of a socket that was named, of berth
// login, or of this machine's socket. Sets client.tls.
absl::Status FindCertificate(ConnectionOptions* options, absl::Time now);

// Client::Connect with that certificate.
absl::StatusOr<std::unique_ptr<Client>> OpenClient(ConnectionOptions* options,
                                                   const ClientEnvironment& environment);

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_IDENTITY_H_
