// Errors on their way over the wire. Inside a program an error is an absl::Status; between programs
// it is a grpc::Status whose details are a google.rpc.Status ("grpc-status-details-bin"), so that
// clients in any language see every violation and the retry delay. Both directions keep code,
// message and details.
#ifndef BERTH_SUPPORT_ERRORS_H_
#define BERTH_SUPPORT_ERRORS_H_

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace berth {

// One thing that is wrong with a request.
struct Violation {
  std::string field;        // path from the request, as in "jobs[0].spec.groups[1].replicas"
  std::string description;  // what is wrong and what would be right
  bool operator==(const Violation&) const = default;
};

// Named bounds of what an error carries: metadata of an answer is limited to 8 KiB by default in
// gRPC, where a message is percent-encoded and details are base64. Whatever a user wrote that an
// error repeats is cut here, at the latest: "...".
inline constexpr size_t kMaxViolationsInError = 40;
inline constexpr size_t kMaxViolationFieldBytes = 200;
inline constexpr size_t kMaxViolationBytes = 600;      // of a description
inline constexpr size_t kMaxErrorMessageBytes = 1500;  // as it is encoded
inline constexpr size_t kMaxErrorBytes = 4500;         // of the details, message included

// An error with google.rpc.BadRequest details. The message names the first violations and counts
// the rest. `violations` must not be empty.
absl::Status ViolationsError(absl::StatusCode code, const std::vector<Violation>& violations);

// RESOURCE_EXHAUSTED or UNAVAILABLE with google.rpc.RetryInfo details.
absl::Status RetryLaterError(absl::StatusCode code, absl::string_view message,
                             absl::Duration delay);

// What the details of an error say; empty, or zero, where there are none.
std::vector<Violation> ViolationsOf(const absl::Status& status);
absl::Duration RetryDelayOf(const absl::Status& status);

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace berth

#endif  // BERTH_SUPPORT_ERRORS_H_
