// Requests to the usage history.
#ifndef BERTH_SERVER_VALIDATION_HISTORY_H_
#define BERTH_SERVER_VALIDATION_HISTORY_H_

#include "absl/status/status.h"
#include "berth/v1/history.pb.h"

namespace berth {

inline constexpr int kMaxAskedUids = 1000;

// INVALID_ARGUMENT with every violation.
absl::Status ValidateGetUsage(const v1::GetUsageRequest& request);
absl::Status ValidateGetCapacity(const v1::GetCapacityRequest& request);
absl::Status ValidateListEndedJobs(const v1::ListEndedJobsRequest& request);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_HISTORY_H_
