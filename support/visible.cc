#include "support/visible.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/utf8.h"

namespace berth {
namespace {

bool IsInvisible(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

std::string EscapeOf(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x80 ? absl::StrFormat("\\x%02x", code) : absl::StrFormat("\\u%04x", code);
}

}  // namespace

size_t FirstInvisible(absl::string_view text) {
  const size_t bad = FirstBadUtf8(text);
  const absl::string_view good = text.substr(0, bad);
  for (absl::string_view rest = good; !rest.empty();) {
    const size_t at = good.size() - rest.size();
    if (IsInvisible(TakeCharacter(&rest))) return at;
  }
  return bad;
}

std::string Visible(absl::string_view text) {
  std::string out;
  while (true) {
    const size_t at = FirstInvisible(text);
    if (at == absl::string_view::npos) break;
    out.append(text.data(), at);
    text.remove_prefix(at);
    if (FirstBadUtf8(text.substr(0, 4)) == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    absl::StrAppend(&out, EscapeOf(TakeCharacter(&text)));
  }
  out.append(text.data(), text.size());
  return out;
}

std::string VisibleLines(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, '\n'), "\n",
                       [](std::string* out, absl::string_view line) { *out += Visible(line); });
}

std::string Shortened(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

}  // namespace berth
