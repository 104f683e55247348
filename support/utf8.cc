#include "support/utf8.h"

namespace berth {

size_t FirstBadUtf8(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](size_t i) -> unsigned {
      return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned lead = byte(at);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0) return at;
    for (size_t i = 1; i < length; ++i) {
      if ((byte(at + i) & 0xc0) != 0x80) return at;
    }
    const unsigned second = byte(at + 1);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
      return at;
    }
    at += length;
  }
  return absl::string_view::npos;
}

std::string SanitizedUtf8(absl::string_view text, size_t max_bytes) {
  std::string mended(text.substr(0, max_bytes));
  for (size_t bad = 0; (bad = FirstBadUtf8(mended)) != absl::string_view::npos;) mended[bad] = '?';
  return mended;
}

}  // namespace berth
