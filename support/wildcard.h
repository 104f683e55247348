// Patterns of names: '*' stands for any text, '?' for one byte.
#ifndef BERTH_SUPPORT_WILDCARD_H_
#define BERTH_SUPPORT_WILDCARD_H_

#include "absl/strings/string_view.h"

namespace berth {

// Matches the whole text. O(product of the lengths) at worst, without recursion.
bool MatchesPattern(absl::string_view text, absl::string_view pattern);

// True if the text contains a wildcard.
inline bool HasWildcard(absl::string_view text) {
  return text.find_first_of("*?") != absl::string_view::npos;
}

}  // namespace berth

#endif  // BERTH_SUPPORT_WILDCARD_H_
