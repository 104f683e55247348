// Structured log lines: one event, then key=value fields, to standard error or a file.
//
//   2026-11-20T21:40:00.123Z info  task started  job=train task=worker-3 node=n12
//
// Common keys: job, task, node, queue, revision, error. Thread-safe. Before StartLog, lines go to
// standard error at level info.
#ifndef BERTH_SUPPORT_LOG_H_
#define BERTH_SUPPORT_LOG_H_

#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace berth {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

// level: "trace", "debug", "info" (or ""), "warn", "error". file: appended to; "" = standard error.
// INVALID_ARGUMENT, naming log.file: it can never be written; UNAVAILABLE: not at the moment.
absl::Status StartLog(absl::string_view level, const std::string& file);
// Changes only the level. INVALID_ARGUMENT if the name is unknown.
absl::Status SetLogLevel(absl::string_view level);
bool IsLogLevel(absl::string_view level);
void FlushLog();
bool LogEnabled(LogLevel level);

// Values with spaces, quotes or control characters are quoted and escaped.
struct LogField {
  LogField(absl::string_view k, const absl::AlphaNum& v) : key(k), value(v.Piece()) {}
  LogField(absl::string_view k, const absl::Status& v) : key(k), value(v.ToString()) {}
  absl::string_view key;
  std::string value;
};
using LogFields = std::initializer_list<LogField>;

void LogLine(LogLevel level, absl::string_view event, LogFields fields = {});
inline void LogDebug(absl::string_view event, LogFields fields = {}) {
  LogLine(LogLevel::kDebug, event, fields);
}
inline void LogInfo(absl::string_view event, LogFields fields = {}) {
  LogLine(LogLevel::kInfo, event, fields);
}
inline void LogWarn(absl::string_view event, LogFields fields = {}) {
  LogLine(LogLevel::kWarn, event, fields);
}
inline void LogError(absl::string_view event, LogFields fields = {}) {
  LogLine(LogLevel::kError, event, fields);
}

// The line without time and level; for tests.
std::string FormatLogLine(absl::string_view event, LogFields fields);

}  // namespace berth

#endif  // BERTH_SUPPORT_LOG_H_
