// CertificateIssuer: an authority of berth-authd, for its doors. Users and nodes have one each.
#ifndef BERTH_CLIENTS_AUTHD_ISSUING_H_
#define BERTH_CLIENTS_AUTHD_ISSUING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "support/pki/authority.h"

namespace berth {

struct IssuedCertificate {
  std::string pem;
  std::string serial;
  absl::Time end;
};

struct CertifiedNode {
  std::string name;
  std::string serial;  // of the certificate that proves it
};

// Immutable; thread-safe.
class CertificateIssuer {
 public:
  // Reads the files of the configuration, which is completed. INVALID_ARGUMENT, naming the file.
  static absl::StatusOr<std::shared_ptr<const CertificateIssuer>> Open(
      const auth::v1::Authd& config);
  static absl::StatusOr<std::shared_ptr<const CertificateIssuer>> OpenForNodes(
      const auth::v1::Authd& config);

  // For the key of the request (PEM, PKCS #10). Errors are those of Authority::Issue.
  absl::StatusOr<IssuedCertificate> Issue(const std::string& request, const std::string& user,
                                          const std::vector<std::string>& groups,
                                          absl::Duration lifetime) const;
  // With the authority of nodes only.
  absl::StatusOr<IssuedCertificate> IssueToNode(const std::string& request, const std::string& node,
                                                absl::Duration lifetime) const;
  // The node whose certificate this is, PEM with its chain. PERMISSION_DENIED: this authority did
  // not issue it, it has expired, or it is none of a node of this trust domain.
  absl::StatusOr<CertifiedNode> NodeOf(const std::string& certificate) const;
  // PEM: the authority of the servers.
  const std::string& servers() const { return servers_; }

 private:
  struct Files {
    std::string certificate, key, servers;
  };
  CertificateIssuer(Authority authority, std::string certificate, std::string servers,
                    std::string trust_domain);
  static absl::StatusOr<std::shared_ptr<const CertificateIssuer>> OpenFiles(
      const Files& files, const std::string& trust_domain);
  absl::StatusOr<IssuedCertificate> IssueTo(const SpiffeId& id, const std::string& request,
                                            const std::vector<std::string>& groups,
                                            absl::Duration lifetime) const;

  const Authority authority_;
  const std::string certificate_;  // PEM: its own
  const std::string servers_;
  const std::string trust_domain_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_ISSUING_H_
