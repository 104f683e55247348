// One call of JobService.Exec from this program's standard input and output: a command inside a
// task, or the task's terminal.
#ifndef BERTH_CLIENTS_SESSION_EXEC_CALL_H_
#define BERTH_CLIENTS_SESSION_EXEC_CALL_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/client.h"

namespace berth {

struct ExecCall {
  v1::ExecRequest::Open open;
  bool raw = false;         // standard input is a terminal: raw mode, and the task gets its size
  bool no_input = false;    // nothing is read from standard input
  bool keeps_open = false;  // the end of standard input is not passed on
  std::string detach_keys;  // as typed; they end the call
};

struct ExecResult {
  std::optional<int> exit_code;
  bool began = false;     // the server has confirmed it
  bool detached = false;  // by the keys
  absl::Status status;
};

// This thread prints the output; another one sends standard input. While the call lasts, a raw
// terminal passes every key on.
ExecResult RunExecCall(Client& client, const ExecCall& call, std::ostream& out, std::ostream& err);

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_EXEC_CALL_H_
