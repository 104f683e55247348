// Text of strangers on its way to people: terminals, tables, logs. Nothing in it may move a cursor,
// begin a new line, or change the direction in which the rest is read.
#ifndef BERTH_SUPPORT_VISIBLE_H_
#define BERTH_SUPPORT_VISIBLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// Where the first of these begins, or npos: control characters (U+0000..U+001F, U+007F..U+009F),
// marks of direction (U+061C, U+200E, U+200F, U+202A..U+202E, U+2066..U+2069), line and paragraph
// separators (U+2028, U+2029), the byte order mark (U+FEFF), bytes that are not UTF-8.
size_t FirstInvisible(absl::string_view text);

// With "\n", "\t", "\x1b", "\u202e" in place of each of them.
std::string Visible(absl::string_view text);
// The same of each line; the ends of lines stay as they are.
std::string VisibleLines(absl::string_view text);

// At most max_bytes (at least 3) of the text: the end of a longer one is "...". No character of
// UTF-8 is cut.
std::string Shortened(absl::string_view text, size_t max_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_VISIBLE_H_
