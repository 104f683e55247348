// Range checks of numeric options (CLI11) with readable messages: "must be 1 or more, got "0"".
// CLI11's own checks print bounds with all their digits.
#ifndef BERTH_SUPPORT_NUMBER_CHECK_H_
#define BERTH_SUPPORT_NUMBER_CHECK_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace berth {

// Whole numbers from `least` to `most`; without `most`, up to the maximum of `Int`.
template <class Int = int32_t>
CLI::Validator WholeNumber(Int least, Int most = std::numeric_limits<Int>::max()) {
  const bool bounded = most != std::numeric_limits<Int>::max();
  const std::string range =
      bounded ? absl::StrCat(least, " to ", most) : absl::StrCat(least, " or more");
  const auto check = [=](const std::string& text) -> std::string {
    Int value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return "";
    const std::string got = absl::StrCat(", got \"", text, "\"");
    const size_t digits = text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0);
    if (text.empty() || digits != std::string::npos) {
      return absl::StrCat("must be a whole number, ", range, got);
    }
    const bool huge = !bounded && text[0] != '-' && text.size() > 9;
    return absl::StrCat("must be ", range, huge ? absl::StrCat(", and at most ", most) : "", got);
  };
  return CLI::Validator(check, range);
}

// Numbers from `least` to `most`.
inline CLI::Validator RealNumber(double least, double most) {
  const std::string range = absl::StrCat(least, " to ", most);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return "";
    return absl::StrCat("must be ", range, ", got \"", text, "\"");
  };
  return CLI::Validator(check, range);
}

}  // namespace berth

#endif  // BERTH_SUPPORT_NUMBER_CHECK_H_
