#include "support/tls.h"

#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

struct Pem {
  std::string certificate;
  std::string key;
  std::string ca;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!absl::StrContains(text, "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a PEM file"));
  }
  return text;
}

absl::StatusOr<Pem> ReadFiles(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty() || files.ca.empty()) {
    return absl::InvalidArgumentError("tls needs all of certificate, key and ca");
  }
  Pem pem;
  for (const auto& [path, text] : {std::pair{&files.certificate, &pem.certificate},
                                   {&files.key, &pem.key},
                                   {&files.ca, &pem.ca}}) {
    absl::StatusOr<std::string> read = ReadPem(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  return pem;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureServerCredentials();
  absl::StatusOr<Pem> pem = ReadFiles(files);
  if (!pem.ok()) return pem.status();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem->ca;
  options.pem_key_cert_pairs.push_back({pem->key, pem->certificate});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureChannelCredentials();
  absl::StatusOr<Pem> pem = ReadFiles(files);
  if (!pem.ok()) return pem.status();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pem->ca;
  options.pem_private_key = pem->key;
  options.pem_cert_chain = pem->certificate;
  return grpc::SslCredentials(options);
}

bool IsLoopbackAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  const bool numeric = host.find_first_not_of("0123456789.") == absl::string_view::npos;
  return host == "localhost" || host == "::1" || (numeric && absl::StartsWith(host, "127."));
}

}  // namespace berth
