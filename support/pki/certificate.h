// What a client's certificate says about its holder. TLS has verified the certificate before; here
// it is only read. Nothing of OpenSSL appears in the interface.
#ifndef BERTH_SUPPORT_PKI_CERTIFICATE_H_
#define BERTH_SUPPORT_PKI_CERTIFICATE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// Names are UTF-8 without NUL, each at most kMaxNameBytes; URIs at most kMaxUriBytes.
struct CertificateNames {
  std::string common_name;  // of the subject; empty if it has none, or several
  std::vector<std::string> organizational_units;  // of the subject, in order
  std::vector<std::string> uris, emails, hosts;   // subjectAltName, in order
  std::vector<std::string> groups;                // kGroupsOid, in order
  std::string serial;                             // lower-case hexadecimal, without leading zeros
  absl::Time not_before, not_after;
  bool operator==(const CertificateNames&) const = default;
};

inline constexpr size_t kMaxNameBytes = 253;
inline constexpr size_t kMaxUriBytes = 2048;  // as SPIFFE IDs; a name may triple when it is encoded
inline constexpr size_t kMaxNames = 100;      // of each list but groups
inline constexpr size_t kMaxCertificateGroups = 1000;  // a user of a large directory has hundreds
inline constexpr size_t kMaxCertificateBytes = size_t{64}
                                               << 10;  // PEM; OpenSSL's peers take 100 KB

// The extension with the groups of a user: SEQUENCE OF UTF8String. The arc is a UUID
// (ITU-T X.667), which needs no registration.
inline constexpr char kGroupsOid[] = "2.25.148017376834311722601014511644182626526";

// UTF-8 without NUL, 1 to kMaxNameBytes.
bool CanBeInCertificate(absl::string_view name);

// The first certificate in the text. INVALID_ARGUMENT: not a certificate, or names that are not as
// above. A certificate with a name that cannot be shown or compared identifies nobody.
absl::StatusOr<CertificateNames> ReadCertificateNames(absl::string_view pem);

// The identity that Berth's own certificates carry: "spiffe://TRUST_DOMAIN/user/NAME". NAME is
// percent-encoded (RFC 3986).
struct SpiffeId {
  enum class Kind { kUser, kNode };
  std::string trust_domain;
  Kind kind = Kind::kUser;
  std::string name;
  bool operator==(const SpiffeId&) const = default;
};
std::string ToUri(const SpiffeId& id);
// INVALID_ARGUMENT if the text is not exactly what ToUri writes: then each identity has one form.
absl::StatusOr<SpiffeId> ParseSpiffeId(absl::string_view uri);

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_CERTIFICATE_H_
