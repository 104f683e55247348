// Internal to UsageFold.
#ifndef BERTH_CORE_HISTORY_USAGE_FOLD_INTERNAL_H_
#define BERTH_CORE_HISTORY_USAGE_FOLD_INTERNAL_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/history/usage_state.h"

namespace berth::history_internal {

// The event, or the record, does not fit the state.
template <class... Parts>
absl::Status Unfit(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat("the usage history: ", parts...));
}

// Whose work is lost that was stopped for this reason; `broken_by`: of a gang whose member was cut.
Loss LossBy(ReleaseReason reason, Loss broken_by);

// Its pending tasks do not wait for resources.
inline bool IsHeldBack(JobState state) {
  return state == JobState::kHeld || state == JobState::kSuspended;
}

}  // namespace berth::history_internal

#endif  // BERTH_CORE_HISTORY_USAGE_FOLD_INTERNAL_H_
