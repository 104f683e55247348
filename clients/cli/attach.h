// Works in the terminal of a task, across lost connections.
#ifndef BERTH_CLIENTS_CLI_ATTACH_H_
#define BERTH_CLIENTS_CLI_ATTACH_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/session.h"

namespace berth {

inline constexpr char kDetachKeys[] = "ctrl-p,ctrl-q";

struct AttachOptions {
  std::string job;
  std::string task;         // empty: rank 0, or the only one
  std::string detach_keys;  // as typed; empty: none
  // The task is known to have started: it may have ended already, or be out of reach for a moment.
  bool started = false;
};

// Returns when the task's command ends, with its exit code; when the keys detach, with kOk; or with
// an error that another try would not mend. Reconnects to the task for kReattachFor. The terminal
// is as before whenever nothing is attached.
// Of a task that has ended before, it prints the output.
ExitCode AttachToTask(Session& session, const AttachOptions& options);

// The task of that name, or of rank 0, or the only one. NOT_FOUND if there is none.
absl::StatusOr<v1::Task> FindTask(Session& session, const std::string& job,
                                  const std::string& task);

// How the latest attempt of a task ended; nothing if it has not.
std::optional<int> TaskExitCode(const v1::Task& task);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_ATTACH_H_
