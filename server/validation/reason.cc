#include "server/validation/reason.h"

#include "absl/strings/str_cat.h"
#include "server/validation/findings.h"
#include "server/validation/one_line.h"

namespace berth {

absl::Status ValidateReason(absl::string_view reason) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "reason");
  if (reason.size() > kMaxReasonBytes) {
    findings.Invalid(path,
                     absl::StrCat("at most ", kMaxReasonBytes, " bytes, has ", reason.size()));
  } else {
    CheckOneLine(path, reason, findings);
  }
  return findings.ToStatus();
}

}  // namespace berth
