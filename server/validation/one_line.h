// The rule for text that is displayed in one line.
#ifndef BERTH_SERVER_VALIDATION_ONE_LINE_H_
#define BERTH_SERVER_VALIDATION_ONE_LINE_H_

#include "absl/strings/string_view.h"
#include "server/validation/findings.h"

namespace berth {

// Valid UTF-8 without control characters (including newlines) and without directional marks
// (FirstInvisible).
void CheckOneLine(const FieldPath& path, absl::string_view text, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_ONE_LINE_H_
