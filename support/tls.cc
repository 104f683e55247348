#include "support/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/pki/openssl.h"
#include "support/text_file.h"

namespace berth {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

struct Pem {
  std::string certificate;
  std::string key;
  std::string ca;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  absl::StatusOr<std::string> text = ReadConfiguredFile(path);
  if (text.ok() && !absl::StrContains(*text, "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a PEM file"));
  }
  return text;
}

std::string Print(const ASN1_TIME* time) {
  const pki::OwnedBio out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  return pki::Written(out.get());
}

absl::Status CheckDates(const X509* certificate, const std::string& path) {
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(end) <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " expired on ", Print(end)));
  }
  if (X509_cmp_current_time(begin) > 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not valid before ", Print(begin)));
  }
  return absl::OkStatus();
}

absl::Status CheckPem(const Pem& pem, const TlsFiles& files) {
  const pki::OwnedX509 certificate(
      PEM_read_bio_X509(pki::Reading(pem.certificate).get(), nullptr, nullptr, nullptr));
  const pki::OwnedX509 ca(PEM_read_bio_X509(pki::Reading(pem.ca).get(), nullptr, nullptr, nullptr));
  const pki::OwnedKey key(
      PEM_read_bio_PrivateKey(pki::Reading(pem.key).get(), nullptr, pki::NoPassword, nullptr));
  for (const auto& [found, path] :
       {std::pair{certificate != nullptr, &files.certificate}, {ca != nullptr, &files.ca}}) {
    if (!found) return absl::InvalidArgumentError(absl::StrCat(*path, " contains no certificate"));
  }
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.key, " contains no private key, or its key has a password"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.key, " is not the key of ", files.certificate));
  }
  return CheckDates(certificate.get(), files.certificate);
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
  if (absl::Status status = CheckPem(pem, files); !status.ok()) return status;
  return pem;
}

// Reads the files again when they have changed, for new connections. What cannot be read changes
// nothing.
std::shared_ptr<FileWatcherCertificateProvider> Watching(const TlsFiles& files) {
  return std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.certificate, files.ca,
      static_cast<unsigned int>(absl::ToInt64Seconds(kTlsReload)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureServerCredentials();
  if (absl::Status status = ReadFiles(files).status(); !status.ok()) return status;
  grpc::experimental::TlsServerCredentialsOptions options(Watching(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeLastingChannelCredentials(
    const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureChannelCredentials();
  if (absl::Status status = ReadFiles(files).status(); !status.ok()) return status;
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watching(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
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

std::string ConnectionHint(const TlsFiles& files, absl::string_view error) {
  if (absl::StrContains(error, "is not in peer certificate") ||
      absl::StrContains(error, "Hostname Verification Check failed")) {
    return "the server's certificate does not name this host (add it to the subjectAltName)";
  }
  if (absl::StrContains(error, "certificate verify failed")) {
    return absl::StrCat("the server's certificate is not signed by the authority in ", files.ca,
                        ", or has expired");
  }
  if (absl::StrContains(error, "wrong version number")) return "the server does not use TLS";
  const bool hung_up =
      absl::StrContains(error, "Socket closed") || absl::StrContains(error, "Connection reset");
  if (!hung_up) return "";
  // An established connection ended: a crash, or the network. TLS can be the reason only if no
  // connection could be established.
  const bool making = absl::StrContains(error, "failed to connect");
  if (!making) return "the server or the network closed the connection";
  if (files.empty()) {
    return "connection closed by the server; it may require TLS: set certificate, key and ca";
  }
  return absl::StrCat("connection closed by the server; it may not accept ", files.certificate,
                      ": see the server's log");
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
