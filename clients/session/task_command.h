// Runs a command in a task, with its input and output in this program's hands.
#ifndef BERTH_CLIENTS_SESSION_TASK_COMMAND_H_
#define BERTH_CLIENTS_SESSION_TASK_COMMAND_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/client.h"

namespace berth {

struct TaskCommand {
  using Next = std::function<std::string()>;
  using Write = std::function<bool(absl::string_view)>;

  std::vector<std::string> argv;
  // Gets the standard output in pieces; an empty one is its end. Returns false to stop the command.
  // Absent: the output is dropped.
  std::function<bool(const Next&)> take;
  // Writes the standard input, on a thread of its own, until it returns or the write fails. False
  // stops the command. Absent: there is none.
  std::function<bool(const Write&)> give;
};

// Returns the exit code. The command's standard error is printed on `err` at its end. `task` empty:
// rank 0.
absl::StatusOr<int> RunInTask(Client& client, const std::string& job, const std::string& task,
                              const TaskCommand& command, std::ostream& err);

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_TASK_COMMAND_H_
