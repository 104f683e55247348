// The certificate that an agent gets from berth-authd: the first one for a join token, later ones
// for the one before (docs/developers/access.md).
#ifndef BERTH_CLIENTS_AGENT_JOIN_NODE_CERTIFICATE_H_
#define BERTH_CLIENTS_AGENT_JOIN_NODE_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/authd_client/ask.h"
#include "support/tls.h"

namespace berth {

struct JoinSettings {
  std::string url;        // of berth-authd
  std::string ca_file;    // PEM: signs its certificate; "" = the system's authorities
  std::string node;       // whose certificate it is
  std::string directory;  // for the agent alone; made if it is missing
};

// The key and its certificate are in one file, so that they are replaced together.
TlsFiles NodeCertificateFiles(const std::string& directory);

struct HeldCertificate {
  absl::Time issued, end;
  std::string serial;
};
// The certificate that is kept, valid at `now`. FAILED_PRECONDITION: there is none, it is another
// node's, or it has expired.
absl::StatusOr<HeldCertificate> HeldNodeCertificate(const JoinSettings& settings, absl::Time now);

// Between 60 % and two thirds of its life; `jitter` is in [0, 1).
absl::Time RenewalTime(const HeldCertificate& held, double jitter);

// Gets a certificate and keeps it. PERMISSION_DENIED: berth-authd or berthd refuses, with the
// reason; UNAVAILABLE: try again; FAILED_PRECONDITION: the directory.
//
// A join that was cut off asks with the same key again, also after a restart: it takes no second
// use of the token.
absl::Status JoinWithToken(const JoinSettings& settings, const std::string& token, const Ask& ask);
absl::Status RenewNodeCertificate(const JoinSettings& settings, const Ask& ask);

// The token in the file, or on standard input for "-". INVALID_ARGUMENT: the file, or what is in
// it, which the message does not contain.
absl::StatusOr<std::string> ReadJoinTokenFile(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_JOIN_NODE_CERTIFICATE_H_
