// Issues client certificates with Berth's identities, and makes what is needed to ask for one.
#ifndef BERTH_SUPPORT_PKI_AUTHORITY_H_
#define BERTH_SUPPORT_PKI_AUTHORITY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "support/pki/certificate.h"

namespace berth {

// A new private key (EC, P-256) and a request for a certificate of it (PKCS #10), both PEM.
struct CertificateRequest {
  std::string key;
  std::string request;
};
absl::StatusOr<CertificateRequest> MakeCertificateRequest();

// A new authority of its own (EC, P-256), PEM. `name` is its common name, 1 to 64 bytes.
struct NewAuthority {
  std::string certificate;
  std::string key;
};
absl::StatusOr<NewAuthority> MakeAuthority(const std::string& name, absl::Duration lifetime,
                                           absl::Time now);

inline constexpr size_t kMaxRequestBytes = size_t{16} << 10;  // PEM
inline constexpr absl::Duration kCertificateLifetime = absl::Hours(12);
inline constexpr absl::Duration kClockSkew = absl::Minutes(5);  // certificates begin so long ago

// A certificate that may sign others, and its key. Immutable; thread-safe.
class Authority {
 public:
  // PEM. INVALID_ARGUMENT: not a certificate, not one of an authority, expired at `now`, or not its
  // key.
  static absl::StatusOr<Authority> Open(absl::string_view certificate, absl::string_view key,
                                        absl::Time now);
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  // A certificate for the key of the request, and for these names; nothing else of the request
  // counts. It identifies clients only, ends after `lifetime` and not after the authority itself.
  // `serial`: lower-case hexadecimal digits; "" = random. INVALID_ARGUMENT: the request does not
  // parse, was not signed with its own key, or has a weak
  // key (RSA below 2048 bits, curves other than P-256 and P-384) or one that spells its curve out;
  // names that no certificate can carry; FAILED_PRECONDITION: the authority has expired.
  absl::StatusOr<std::string> Issue(absl::string_view request, const SpiffeId& id,
                                    const std::vector<std::string>& groups, absl::Duration lifetime,
                                    absl::Time now, const std::string& serial = "") const;

 private:
  struct Parts;
  explicit Authority(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_AUTHORITY_H_
