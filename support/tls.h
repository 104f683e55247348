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

// PEM files, read once. All three are given, or none: then connections are plain text.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;  // the other side must show a certificate of this authority
  bool empty() const { return certificate.empty() && key.empty() && ca.empty(); }
};

// INVALID_ARGUMENT if only some of the files are named, NOT_FOUND or the read error if one cannot
// be read.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files);

// "127.0.0.1:7070", "localhost:0", "[::1]:7070" and "unix:..." are reachable from this machine
// only.
bool IsLoopbackAddress(absl::string_view address);

}  // namespace berth

#endif  // BERTH_SUPPORT_TLS_H_
