// Expands "rack[1-2]-n[01-64]" to rack1-n01 ... rack2-n64. Numbers keep the width of the lower
// bound. Lists are "[1-3,7]".
#ifndef BERTH_SUPPORT_NAME_PATTERN_H_
#define BERTH_SUPPORT_NAME_PATTERN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr size_t kMaxPatternNames = 200000;

// In order; the last bracket varies fastest. INVALID_ARGUMENT for an unclosed bracket, a range that
// runs backwards or is not a number, or too many names.
absl::StatusOr<std::vector<std::string>> ExpandNamePattern(absl::string_view pattern);

}  // namespace berth

#endif  // BERTH_SUPPORT_NAME_PATTERN_H_
