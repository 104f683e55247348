// Makes untrusted text safe to show in terminals, tables and logs: it cannot move the cursor, begin
// a new line, or change the direction in which the rest is read.
#ifndef BERTH_SUPPORT_VISIBLE_H_
#define BERTH_SUPPORT_VISIBLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// The offset of the first unsafe character, or npos: control characters (U+0000..U+001F,
// U+007F..U+009F), direction marks (U+061C, U+200E, U+200F, U+202A..U+202E, U+2066..U+2069), line
// and paragraph separators (U+2028, U+2029), the byte order mark (U+FEFF), bytes that are not
// UTF-8.
size_t FirstInvisible(absl::string_view text);

// Replaces each unsafe character by "
// ", "\t", "\x1b", "\u202e".
std::string Visible(absl::string_view text);
// The same for each line; line ends are kept.
std::string VisibleLines(absl::string_view text);

// At most max_bytes (at least 3) of the text; a longer text ends in "...". No UTF-8 character is
// split.
std::string Shortened(absl::string_view text, size_t max_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_VISIBLE_H_
