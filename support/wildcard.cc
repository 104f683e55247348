#include "support/wildcard.h"

namespace berth {

// On a mismatch the latest '*' takes one more byte; earlier ones never need to.
bool MatchesPattern(absl::string_view text, absl::string_view pattern) {
  size_t at = 0, p = 0;
  size_t star = absl::string_view::npos, taken = 0;  // the latest '*', and where its text ends
  while (at < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = at;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[at])) {
      ++p;
      ++at;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace berth
