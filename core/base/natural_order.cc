#include "core/base/natural_order.h"

#include "absl/strings/ascii.h"

namespace berth {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Removes the digits at the front and returns them without leading zeros.
absl::string_view TakeNumber(absl::string_view* text) {
  size_t end = 0;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  absl::string_view digits = text->substr(0, end);
  text->remove_prefix(end);
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

bool NaturalLess(absl::string_view a, absl::string_view b) {
  absl::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (IsDigit(x[0]) && IsDigit(y[0])) {
      const absl::string_view m = TakeNumber(&x), n = TakeNumber(&y);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
      continue;
    }
    if (x[0] != y[0]) return x[0] < y[0];
    x.remove_prefix(1);
    y.remove_prefix(1);
  }
  return x.size() != y.size() ? x.size() < y.size() : a < b;
}

}  // namespace berth
