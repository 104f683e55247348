// Errors on the wire. Inside a program an error is an absl::Status. Between programs it is a
// grpc::Status whose details are a google.rpc.Status ("grpc-status-details-bin"), so that clients
// in any language see every violation and the retry delay. Both conversions keep code, message and
// details.
#ifndef BERTH_SUPPORT_ERRORS_H_
#define BERTH_SUPPORT_ERRORS_H_

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace berth {

// One problem with a request.
struct Violation {
  std::string field;        // path from the request, such as "jobs[0].spec.groups[1].replicas"
  std::string description;  // the problem, and what would be valid
  bool operator==(const Violation&) const = default;
};

// Limits on the size of an error. gRPC limits the metadata of a response to 8 KiB by default; it
// percent-encodes the message and encodes details in base64. User input that an error repeats is
// cut here at the latest, and then ends in "...".
inline constexpr size_t kMaxViolationsInError = 40;
inline constexpr size_t kMaxViolationFieldBytes = 200;
inline constexpr size_t kMaxViolationBytes = 600;      // of a description
inline constexpr size_t kMaxErrorMessageBytes = 1500;  // when encoded
inline constexpr size_t kMaxErrorBytes = 4500;         // of the details, including the message

// An error with google.rpc.BadRequest details. The message lists the first violations and counts
// the rest. `violations` must not be empty.
absl::Status ViolationsError(absl::StatusCode code, const std::vector<Violation>& violations);

// RESOURCE_EXHAUSTED or UNAVAILABLE with google.rpc.RetryInfo details.
absl::Status RetryLaterError(absl::StatusCode code, absl::string_view message,
                             absl::Duration delay);

// The details of an error; empty, or zero, if there are none.
std::vector<Violation> ViolationsOf(const absl::Status& status);
absl::Duration RetryDelayOf(const absl::Status& status);

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace berth

#endif  // BERTH_SUPPORT_ERRORS_H_
