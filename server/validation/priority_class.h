// The API's rules for priority classes by themselves.
#ifndef BERTH_SERVER_VALIDATION_PRIORITY_CLASS_H_
#define BERTH_SERVER_VALIDATION_PRIORITY_CLASS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "berth/v1/priority_class.pb.h"

namespace berth {

inline constexpr uint32_t kFormatOfPriorityClasses = 10;

absl::Status ValidateCreatePriorityClass(const v1::CreatePriorityClassRequest& request);
absl::Status ValidateUpdatePriorityClass(const v1::UpdatePriorityClassRequest& request);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_PRIORITY_CLASS_H_
