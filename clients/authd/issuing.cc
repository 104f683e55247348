#include "clients/authd/issuing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "support/pki/certificate.h"
#include "support/pki/issuer.h"
#include "support/text_file.h"

namespace berth {

absl::StatusOr<std::shared_ptr<const CertificateIssuer>> CertificateIssuer::OpenFiles(
    const Files& files, const std::string& trust_domain) {
  absl::StatusOr<std::string> certificate = ReadConfiguredFile(files.certificate);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = ReadConfiguredFile(files.key);
  if (!key.ok()) return key.status();
  absl::StatusOr<std::string> servers = ReadConfiguredFile(files.servers);
  if (!servers.ok()) return servers.status();
  if (absl::Status read = ReadCertificateNames(*servers).status(); !read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(files.servers, ": ", read.message()));
  }
  absl::StatusOr<Authority> authority = Authority::Open(*certificate, *key, absl::Now());
  if (!authority.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.certificate, ": ", authority.status().message()));
  }
  return std::shared_ptr<const CertificateIssuer>(new CertificateIssuer(
      *std::move(authority), *std::move(certificate), *std::move(servers), trust_domain));
}

absl::StatusOr<std::shared_ptr<const CertificateIssuer>> CertificateIssuer::Open(
    const auth::v1::Authd& config) {
  return OpenFiles({config.certificate(), config.key(), config.servers()}, config.trust_domain());
}

absl::StatusOr<std::shared_ptr<const CertificateIssuer>> CertificateIssuer::OpenForNodes(
    const auth::v1::Authd& config) {
  return OpenFiles({config.nodes().authority(), config.nodes().authority_key(), config.servers()},
                   config.trust_domain());
}

CertificateIssuer::CertificateIssuer(Authority authority, std::string certificate,
                                     std::string servers, std::string trust_domain)
    : authority_(std::move(authority)),
      certificate_(std::move(certificate)),
      servers_(std::move(servers)),
      trust_domain_(std::move(trust_domain)) {}

absl::StatusOr<IssuedCertificate> CertificateIssuer::IssueTo(const SpiffeId& id,
                                                             const std::string& request,
                                                             const std::vector<std::string>& groups,
                                                             absl::Duration lifetime) const {
  absl::StatusOr<std::string> pem = authority_.Issue(request, id, groups, lifetime, absl::Now());
  if (!pem.ok()) return pem.status();
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(*pem);
  if (!names.ok()) return names.status();
  return IssuedCertificate{
      .pem = *std::move(pem), .serial = names->serial, .end = names->not_after};
}

absl::StatusOr<IssuedCertificate> CertificateIssuer::Issue(const std::string& request,
                                                           const std::string& user,
                                                           const std::vector<std::string>& groups,
                                                           absl::Duration lifetime) const {
  return IssueTo({.trust_domain = trust_domain_, .kind = SpiffeId::Kind::kUser, .name = user},
                 request, groups, lifetime);
}

absl::StatusOr<IssuedCertificate> CertificateIssuer::IssueToNode(const std::string& request,
                                                                 const std::string& node,
                                                                 absl::Duration lifetime) const {
  return IssueTo({.trust_domain = trust_domain_, .kind = SpiffeId::Kind::kNode, .name = node},
                 request, {}, lifetime);
}

absl::StatusOr<CertifiedNode> CertificateIssuer::NodeOf(const std::string& certificate) const {
  absl::Status issued = CheckIssuedTo(certificate, certificate_, absl::Now());
  if (!issued.ok()) return absl::PermissionDeniedError(issued.message());
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(certificate);
  const absl::Status no_node =
      absl::PermissionDeniedError("the certificate is none of a node here");
  if (!names.ok() || names->uris.size() != 1) return no_node;
  const absl::StatusOr<SpiffeId> id = ParseSpiffeId(names->uris[0]);
  const bool is_node =
      id.ok() && id->kind == SpiffeId::Kind::kNode && id->trust_domain == trust_domain_;
  if (!is_node) return no_node;
  return CertifiedNode{.name = id->name, .serial = names->serial};
}

}  // namespace berth
