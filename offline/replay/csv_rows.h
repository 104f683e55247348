// Reads CSV row by row, and the values in it.
#ifndef BERTH_OFFLINE_REPLAY_CSV_ROWS_H_
#define BERTH_OFFLINE_REPLAY_CSV_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth::replay {

using CsvRow = std::vector<std::string>;

// Calls `take` with each row and the number of the line on which it begins; stops at the first
// error. Empty lines are skipped. INVALID_ARGUMENT with FILE:LINE if quotes do not match; the
// errors of `take` unchanged.
absl::Status ForEachRow(absl::string_view text, const std::string& file,
                        absl::FunctionRef<absl::Status(const CsvRow& row, int64_t line)> take);

// Seconds since the epoch, from a number of seconds or from a date and time in UTC.
absl::StatusOr<absl::Duration> ParseLogTime(absl::string_view text);

// Formats a field: with quotes if it needs them.
std::string CsvField(const std::string& text);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_CSV_ROWS_H_
