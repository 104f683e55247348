#include "support/utf8.h"

#include <utf8.h>

#include <algorithm>

namespace berth {

size_t FirstBadUtf8(absl::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  // Most texts are ASCII, which this skips several times faster.
  const auto begin = std::find_if_not(text.begin(), text.end(), is_ascii);
  const auto bad = utf8::find_invalid(begin, text.end());
  return bad == text.end() ? absl::string_view::npos : static_cast<size_t>(bad - text.begin());
}

uint32_t TakeCharacter(absl::string_view* text) {
  auto next = text->begin();
  const uint32_t code = utf8::unchecked::next(next);
  text->remove_prefix(static_cast<size_t>(next - text->begin()));
  return code;
}

std::string SanitizedUtf8(absl::string_view text, size_t max_bytes) {
  std::string repaired(text.substr(0, max_bytes));
  auto at = repaired.begin();
  while ((at = utf8::find_invalid(at, repaired.end())) != repaired.end()) *at = '?';
  return repaired;
}

}  // namespace berth
