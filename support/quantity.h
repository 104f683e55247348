// Quantities in human notation: "500m" of a core, "1.5Ti" of memory, "1h30m" of time.
#ifndef BERTH_SUPPORT_QUANTITY_H_
#define BERTH_SUPPORT_QUANTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// "1.5" -> 1500, "500m" -> 500. Errors: negative, too precise, or not in 63 bits.
absl::StatusOr<int64_t> ParseCpuMillis(absl::string_view text);
// "64", "1Ki", "1.5Gi", "80GB", "80GiB": bytes. Same errors.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// "72h", "1h30m", "1.5s", "500ms", "2d", "0". In two parts, as 64-bit nanoseconds cannot hold
// 10,000 years.
struct SecondsAndNanos {
  int64_t seconds = 0;
  int32_t nanos = 0;
};
absl::StatusOr<SecondsAndNanos> ParseDuration(absl::string_view text);

// Exact: the parsers return the same number.
std::string FormatCpuMillis(int64_t millis);
std::string FormatBytes(int64_t bytes);
std::string FormatDuration(SecondsAndNanos duration);
// The shortest text, from 6 to `digits` digits, that reads back as the same number. 9 digits are
// enough for a float, 17 for a double.
std::string ShortestReal(double value, int digits);

}  // namespace berth

#endif  // BERTH_SUPPORT_QUANTITY_H_
