// The logs of several tasks as one, in whole lines.
//
// While following, a thread reads each task's log, and a line is printed as soon as it is whole:
// the tasks take turns. Without following, the tasks are printed one after the other.
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
// Read of one task and not printed yet; then its thread waits.
inline constexpr size_t kMaxBufferedLogBytes = size_t{1} << 20;

struct LogLine {
  size_t task = 0;                 // which of the requests
  std::optional<absl::Time> time;  // when it was begun, if the request asks, and it is known
  std::string text;                // without its newline
};

// Reads the logs of `requests`, and calls `print` for each line on this thread; false from it ends
// all. All follow, and are at most kMaxLogStreams, or none does. Gives the status of each request
// that was read.
std::vector<absl::Status> ReadLogsTogether(Session& session,
                                           const std::vector<v1::ReadLogsRequest>& requests,
                                           const std::function<bool(const LogLine&)>& print);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_LOG_MERGE_H_
