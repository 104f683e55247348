#include "clients/authd/oidc/server_certificate.h"

#include <gnutls/gnutls.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "support/log.h"

namespace berth::oidc {
namespace {

constexpr std::streamsize kMaxPemBytes = std::streamsize{1} << 20;

absl::StatusOr<std::string> ReadPemFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxPemBytes, '\0');
  file.read(text.data(), kMaxPemBytes);
  if (file.gcount() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

gnutls_datum_t Datum(std::string& text) {
  return {reinterpret_cast<unsigned char*>(text.data()), static_cast<unsigned>(text.size())};
}

absl::StatusOr<CertificatePem> ReadPair(const std::string& chain_path,
                                        const std::string& key_path) {
  absl::StatusOr<std::string> chain = ReadPemFile(chain_path);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<std::string> key = ReadPemFile(key_path);
  if (!key.ok()) return key.status();
  gnutls_certificate_credentials_t credentials = nullptr;
  if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS) {
    return absl::UnavailableError("out of memory");
  }
  const absl::Cleanup free_them = [&] { gnutls_certificate_free_credentials(credentials); };
  const gnutls_datum_t chain_datum = Datum(*chain), key_datum = Datum(*key);
  const int result = gnutls_certificate_set_x509_key_mem2(credentials, &chain_datum, &key_datum,
                                                          GNUTLS_X509_FMT_PEM, nullptr, 0);
  if (result < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(chain_path, " and ", key_path, ": ", gnutls_strerror(result)));
  }
  return CertificatePem{.chain = *std::move(chain), .key = *std::move(key)};
}

bool AreSame(const CertificatePem& a, const CertificatePem& b) {
  return a.chain == b.chain && a.key == b.key;
}

}  // namespace

absl::StatusOr<ServerCertificate> ServerCertificate::Open(const std::string& chain,
                                                          const std::string& key) {
  absl::StatusOr<CertificatePem> pem = ReadPair(chain, key);
  if (!pem.ok()) return pem.status();
  return ServerCertificate(chain, key, *std::move(pem));
}

ServerCertificate::ServerCertificate(std::string chain, std::string key, CertificatePem pem)
    : chain_(std::move(chain)), key_(std::move(key)), pem_(std::move(pem)) {}

ServerCertificate::ServerCertificate(ServerCertificate&& other) noexcept
    : chain_(other.chain_), key_(other.key_) {
  absl::MutexLock lock(&other.mutex_);
  pem_ = other.pem_;
}

CertificatePem ServerCertificate::Current(absl::Duration steady) {
  absl::MutexLock lock(&mutex_);
  if (steady - looked_ < kCertificateReload) return pem_;
  looked_ = steady;
  absl::StatusOr<CertificatePem> pem = ReadPair(chain_, key_);
  if (!pem.ok()) {
    LogWarn("certificate not renewed", {{"error", pem.status()}});
  } else if (!AreSame(*pem, pem_)) {
    LogInfo("certificate of HTTPS renewed", {{"file", chain_}});
    pem_ = *std::move(pem);
  }
  return pem_;
}

}  // namespace berth::oidc
