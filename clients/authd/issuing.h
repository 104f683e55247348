// CertificateIssuer: the authority of berth-authd, for all of its doors.
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

// Immutable; thread-safe.
class CertificateIssuer {
 public:
  // Reads the files of the configuration, which is completed. INVALID_ARGUMENT, naming the file.
  static absl::StatusOr<std::shared_ptr<const CertificateIssuer>> Open(
      const auth::v1::Authd& config);

  // For the key of the request (PEM, PKCS #10). Errors are those of Authority::Issue.
  absl::StatusOr<IssuedCertificate> Issue(const std::string& request, const std::string& user,
                                          const std::vector<std::string>& groups,
                                          absl::Duration lifetime) const;
  // PEM: the authority of the servers.
  const std::string& servers() const { return servers_; }

 private:
  CertificateIssuer(Authority authority, std::string servers, std::string trust_domain);

  const Authority authority_;
  const std::string servers_;
  const std::string trust_domain_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_ISSUING_H_
