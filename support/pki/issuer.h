// By whom a certificate was issued.
#ifndef BERTH_SUPPORT_PKI_ISSUER_H_
#define BERTH_SUPPORT_PKI_ISSUER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// TLS has verified the certificate before; here the path is only looked at.
//
// Whether the path from a client's certificate to `authorities` goes through a key of one of
// `through`. All are PEM; `presented` is what the client sent besides its own certificate, and may
// be empty. Times are not looked at. INVALID_ARGUMENT: a text that does not parse, or no path to
// the authorities.
absl::StatusOr<bool> IsIssuedThrough(absl::string_view certificate, absl::string_view presented,
                                     absl::string_view authorities, absl::string_view through);

// Verifies a client's certificate, where TLS has not: OK if a path leads from the first certificate
// in the text to the first one of `authority`, perhaps through the others, and all of it may
// identify clients at `now`. INVALID_ARGUMENT otherwise.
absl::Status CheckIssuedTo(absl::string_view certificate, absl::string_view authority,
                           absl::Time now);

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_ISSUER_H_
