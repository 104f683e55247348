// UTF-8: what protobuf's strings must be, and what comes from elsewhere may not.
#ifndef BERTH_SUPPORT_UTF8_H_
#define BERTH_SUPPORT_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// Where the first byte stands that is not UTF-8, or npos. Overlong forms and surrogates are not
// UTF-8 either.
size_t FirstBadUtf8(absl::string_view text);

// The first so many bytes of the text, with '?' for every such byte.
std::string MendedUtf8(absl::string_view text, size_t max_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_UTF8_H_
