// What berth-authd and its clients agree on, besides the messages (proto/berth/auth/v1).
#ifndef BERTH_SUPPORT_PKI_AUTH_PROTOCOL_H_
#define BERTH_SUPPORT_PKI_AUTH_PROTOCOL_H_

#include <cstddef>

#include "support/pki/certificate.h"

namespace berth {

inline constexpr char kAuthSocket[] = "/run/berth/auth.sock";
// Of a message: a certificate, the authority of servers, and less than that besides. The kernel
// takes packets of this size by default (net.core.wmem_default).
inline constexpr size_t kMaxAuthPacket = 2 * kMaxCertificateBytes + (size_t{16} << 10);

inline constexpr size_t kMaxTokenBytes = size_t{16} << 10;
// Paths of the HTTPS server.
inline constexpr char kLoginPath[] = "/v1/login";
inline constexpr char kCertificatePath[] = "/v1/certificate";
inline constexpr char kNodeCertificatePath[] = "/v1/node-certificate";

}  // namespace berth

#endif  // BERTH_SUPPORT_PKI_AUTH_PROTOCOL_H_
