#include "clients/authd/issuing.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CertificateIssuer>> CertificateIssuer::Open(
    const auth::v1::Authd& config) {
  const absl::StatusOr<std::string> certificate = ReadText(config.certificate());
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = ReadText(config.key());
  if (!key.ok()) return key.status();
  absl::StatusOr<std::string> servers = ReadText(config.servers());
  if (!servers.ok()) return servers.status();
  if (absl::Status read = ReadCertificateNames(*servers).status(); !read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(config.servers(), ": ", read.message()));
  }
  absl::StatusOr<Authority> authority = Authority::Open(*certificate, *key, absl::Now());
  if (!authority.ok()) return authority.status();
  return std::shared_ptr<const CertificateIssuer>(
      new CertificateIssuer(*std::move(authority), *std::move(servers), config.trust_domain()));
}

CertificateIssuer::CertificateIssuer(Authority authority, std::string servers,
                                     std::string trust_domain)
    : authority_(std::move(authority)),
      servers_(std::move(servers)),
      trust_domain_(std::move(trust_domain)) {}

absl::StatusOr<IssuedCertificate> CertificateIssuer::Issue(const std::string& request,
                                                           const std::string& user,
                                                           const std::vector<std::string>& groups,
                                                           absl::Duration lifetime) const {
  const SpiffeId id{.trust_domain = trust_domain_, .kind = SpiffeId::Kind::kUser, .name = user};
  absl::StatusOr<std::string> pem = authority_.Issue(request, id, groups, lifetime, absl::Now());
  if (!pem.ok()) return pem.status();
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(*pem);
  if (!names.ok()) return names.status();
  return IssuedCertificate{
      .pem = *std::move(pem), .serial = names->serial, .end = names->not_after};
}

}  // namespace berth
