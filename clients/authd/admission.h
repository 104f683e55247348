// Asks berthd whether a node may have a certificate.
#ifndef BERTH_CLIENTS_AUTHD_ADMISSION_H_
#define BERTH_CLIENTS_AUTHD_ADMISSION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "berth/v1/node.pb.h"

namespace berth {

// OK; PERMISSION_DENIED with the reason; INVALID_ARGUMENT; UNAVAILABLE: ask again. Thread-safe.
using Admit = std::function<absl::Status(const v1::AdmitNodeRequest& request)>;

inline constexpr absl::Duration kAdmissionPatience = absl::Seconds(8);

// Over a new connection each time, to the server that leads. INVALID_ARGUMENT: the TLS files.
absl::StatusOr<Admit> AdmitByBerthd(const auth::v1::Nodes& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_ADMISSION_H_
