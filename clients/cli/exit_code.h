// Exit codes of `berth`: part of its interface, documented in docs/users/commands.md and never
// renumbered.
#ifndef BERTH_CLIENTS_CLI_EXIT_CODE_H_
#define BERTH_CLIENTS_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace berth {

enum class ExitCode : int {
  kOk = 0,
  kRefused = 1,        // wrong state, name in use, changed concurrently, not permitted
  kUsage = 2,          // the command line is wrong
  kNotFound = 3,       // no such job, queue or node
  kInvalid = 4,        // a manifest or value is wrong, or a file cannot be read
  kUnavailable = 5,    // the server cannot be reached, or is overloaded, until the timeout
  kUnimplemented = 6,  // this server does not have the feature
  kJobFailed = 10,     // the awaited job failed or was cancelled
  kWaitTimeout = 11,   // the job did not end before --timeout
};

inline ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kInvalid;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUnimplemented;
    default:
      return ExitCode::kRefused;
  }
}

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_EXIT_CODE_H_
