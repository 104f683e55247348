// Credentials for gRPC: plain text on loopback, mutual TLS everywhere else.
#ifndef BERTH_SUPPORT_TLS_H_
#define BERTH_SUPPORT_TLS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// PEM files, read once: a renewed certificate counts from the next start. All three are given, or
// none: then connections are plain text.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;  // the other side must show a certificate of this authority
  bool empty() const { return certificate.empty() && key.empty() && ca.empty(); }
};

// INVALID_ARGUMENT naming the file if only some are given, one cannot be read or is not what it
// should be, the key is another certificate's, or the certificate is out of date: the other side
// would only close the connection.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files);

// What may be behind gRPC's words for a connection that failed, for people; "" if there is no more
// to say. A server that takes no client without a certificate of its authority says so by hanging
// up, and no more can be known here.
std::string ConnectionHint(const TlsFiles& files, absl::string_view error);

// "127.0.0.1:7070", "localhost:0", "[::1]:7070" and "unix:..." are reachable from this machine
// only.
bool IsLoopbackAddress(absl::string_view address);

}  // namespace berth

#endif  // BERTH_SUPPORT_TLS_H_
