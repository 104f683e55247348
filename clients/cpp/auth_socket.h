// Certificates from berth-authd of this machine, without a login: the kernel tells it who asks.
#ifndef BERTH_CLIENTS_CPP_AUTH_SOCKET_H_
#define BERTH_CLIENTS_CPP_AUTH_SOCKET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/kept_certificate.h"
#include "support/tls.h"

namespace berth {

inline constexpr char kAuthdErrors[] = "berth-authd";  // begins messages about it

// The files of a certificate for the calling user. One in `directory` is used again until two
// thirds of its life are over, and as long as it is valid if berth-authd does not answer. The
// directory is made if it is missing; it and its files are the user's alone. Safe to call from
// several processes at once. UNAVAILABLE: nobody listens, or try again; PERMISSION_DENIED: no
// certificate for this user, with the reason; FAILED_PRECONDITION: the directory.
absl::StatusOr<TlsFiles> CertificateFrom(const std::string& socket, const std::string& directory,
                                         absl::Time now);

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_AUTH_SOCKET_H_
