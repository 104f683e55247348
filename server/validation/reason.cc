#include "server/validation/reason.h"

#include "absl/strings/str_cat.h"
#include "support/errors.h"

namespace berth {

absl::Status ValidateReason(absl::string_view reason) {
  if (reason.size() <= kMaxReasonBytes) return absl::OkStatus();
  return ViolationsError(
      absl::StatusCode::kInvalidArgument,
      {{"reason", absl::StrCat("at most ", kMaxReasonBytes, " bytes, has ", reason.size())}});
}

}  // namespace berth
