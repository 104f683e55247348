// The rule for text that people are shown in one line.
#ifndef BERTH_SERVER_VALIDATION_ONE_LINE_H_
#define BERTH_SERVER_VALIDATION_ONE_LINE_H_

#include "absl/strings/string_view.h"
#include "server/validation/findings.h"

namespace berth {

// Neither control characters, newlines among them, nor marks of direction, and UTF-8
// (FirstInvisible).
void CheckOneLine(const FieldPath& path, absl::string_view text, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_ONE_LINE_H_
