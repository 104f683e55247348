// The rule for reasons in requests.
#ifndef BERTH_SERVER_VALIDATION_REASON_H_
#define BERTH_SERVER_VALIDATION_REASON_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace berth {

// The reason for a cordon, a drain or a cancel: at most kMaxReasonBytes, one line (CheckOneLine).
inline constexpr size_t kMaxReasonBytes = 1024;
absl::Status ValidateReason(absl::string_view reason);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_REASON_H_
