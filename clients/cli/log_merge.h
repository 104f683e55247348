// Merges the logs of several tasks, in whole lines.
//
// While following, a thread reads each task's log, and each line is printed when it is complete:
// the tasks take turns. Otherwise the tasks are printed one after the other.
#ifndef BERTH_CLIENTS_CLI_LOG_MERGE_H_
#define BERTH_CLIENTS_CLI_LOG_MERGE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/session.h"

namespace berth {

inline constexpr size_t kMaxLogStreams = 32;
// Lines longer than this are printed in parts.
inline constexpr size_t kMaxLogLineBytes = size_t{64} << 10;
// Bytes of one task that were read but not printed yet. Beyond that, its thread waits.
inline constexpr size_t kMaxBufferedLogBytes = size_t{1} << 20;

struct LogLine {
  size_t task = 0;                 // index of the request
  std::optional<absl::Time> time;  // when it began, if requested and known
  std::string text;                // without its newline
};

// Reads the logs of `requests`, and calls `print` for each line on this thread until it returns
// false. Either all requests follow, at most kMaxLogStreams, or none. Returns the status of each
// request that was read.
std::vector<absl::Status> ReadLogsTogether(Session& session,
                                           const std::vector<v1::ReadLogsRequest>& requests,
                                           const std::function<bool(const LogLine&)>& print);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_LOG_MERGE_H_
