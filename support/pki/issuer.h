// By whom a certificate was issued. TLS has verified it before; here the path is only looked at.
#ifndef BERTH_SUPPORT_PKI_ISSUER_H_
#define BERTH_SUPPORT_PKI_ISSUER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Whether the path from a client's certificate to `authorities` goes through a key of one of
// `through`. All are PEM; `presented` is what the client sent besides its own certificate, and may
// be empty. Times are not looked at. INVALID_ARGUMENT: a text that does not parse, or no path to
// the authorities.
absl::StatusOr<bool> IsIssuedThrough(absl::string_view certificate, absl::string_view presented,
                                     absl::string_view authorities, absl::string_view through);

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_ISSUER_H_
