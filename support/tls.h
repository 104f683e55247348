// Credentials for gRPC: plain text on loopback, mutual TLS everywhere else.
#ifndef BERTH_SUPPORT_TLS_H_
#define BERTH_SUPPORT_TLS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// PEM files. Either all three are set, or none; then connections are plain text.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;  // the authority that must have signed the peer's certificate
  bool empty() const { return certificate.empty() && key.empty() && ca.empty(); }
};

// INVALID_ARGUMENT, naming the file, if only some files are given, one cannot be read or parsed,
// the key does not match the certificate, or the certificate is out of date. Without these checks
// the peer would close the connection without a reason.
//
// Servers, and clients that last, look at the files every kTlsReload: what was renewed counts for
// new connections. MakeChannelCredentials reads them once.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeLastingChannelCredentials(
    const TlsFiles& files);
inline constexpr absl::Duration kTlsReload = absl::Seconds(5);

// Explains gRPC's message for a failed connection to users; "" if there is nothing to add. A server
// that rejects a client certificate just closes the connection, so the client cannot know more.
std::string ConnectionHint(const TlsFiles& files, absl::string_view error);

// "127.0.0.1:7070", "localhost:0", "[::1]:7070" and "unix:..." are reachable from this machine
// only.
bool IsLoopbackAddress(absl::string_view address);

}  // namespace berth

#endif  // BERTH_SUPPORT_TLS_H_
