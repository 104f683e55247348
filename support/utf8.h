// UTF-8: protobuf strings must be valid UTF-8; external input may not be.
#ifndef BERTH_SUPPORT_UTF8_H_
#define BERTH_SUPPORT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// The offset of the first byte that is not UTF-8, or npos. Overlong forms and surrogates are not
// UTF-8 either.
size_t FirstBadUtf8(absl::string_view text);

// Removes the first character of `text`, which must be UTF-8 up to there and not empty, and returns
// its code point.
uint32_t TakeCharacter(absl::string_view* text);

// At most `max_bytes` of the text, with '?' for every invalid byte.
std::string SanitizedUtf8(absl::string_view text, size_t max_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_UTF8_H_
