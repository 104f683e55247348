#include "clients/session/identity.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "clients/cpp/auth_socket.h"
#include "clients/cpp/kept_certificate.h"
#include "support/pki/auth_protocol.h"
#include "support/server_list.h"

namespace berth {
namespace {

absl::Status TakeFromSocket(const std::string& socket, absl::Time now, TlsFiles* tls) {
  const absl::StatusOr<std::string> directory = CertificateDirectory();
  if (!directory.ok()) return directory.status();
  absl::StatusOr<TlsFiles> files = CertificateFrom(socket, *directory, now);
  if (files.ok()) *tls = *std::move(files);
  return files.status();
}

// True: the login counts. False: nobody has logged in.
absl::StatusOr<bool> TakeLogin(absl::Time now, TlsFiles* tls) {
  const absl::StatusOr<std::string> directory = CertificateDirectory();
  if (!directory.ok()) return false;
  const TlsFiles files = LoginFiles(*directory);
  if (access(files.certificate.c_str(), F_OK) != 0) return false;
  if (absl::Status status = PrepareCertificateDirectory(*directory); !status.ok()) return status;
  if (now >= LookAtCertificate(files).end) {
    return absl::FailedPreconditionError(
        "your login has ended; run berth login again, or berth logout");
  }
  *tls = files;
  return true;
}

}  // namespace

absl::Status FindCertificate(ConnectionOptions* options, absl::Time now) {
  TlsFiles* tls = &options->client.tls;
  if (!tls->empty()) return absl::OkStatus();
  const bool off = options->auth_socket == "off";
  if (!off && !options->auth_socket.empty()) return TakeFromSocket(options->auth_socket, now, tls);
  // A task's socket, or berthd's own: who may connect is known there.
  if (absl::StartsWith(options->client.server, "unix:")) return absl::OkStatus();
  // berthd on loopback mostly runs without TLS.
  const bool local = AreLoopback(options->client.server);
  if (local && options->auth.empty()) return absl::OkStatus();
  const absl::StatusOr<bool> logged_in = TakeLogin(now, tls);
  const bool socket = !off && !local && access(kAuthSocket, F_OK) == 0;
  if (logged_in.ok() && *logged_in) return absl::OkStatus();
  if (socket) return TakeFromSocket(kAuthSocket, now, tls);
  if (logged_in.ok() && !local && !options->auth.empty()) {
    return absl::FailedPreconditionError("you are not logged in; run berth login");
  }
  return logged_in.status();
}

absl::StatusOr<std::unique_ptr<Client>> OpenClient(ConnectionOptions* options,
                                                   const ClientEnvironment& environment) {
  const absl::Status status = FindCertificate(options, environment.clock->Now());
  if (!status.ok()) return status;
  return Client::Connect(options->client, environment);
}

}  // namespace berth
