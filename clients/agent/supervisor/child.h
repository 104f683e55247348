// Forks and execs the command of one task, and reports why it could not start.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "clients/agent/supervisor/spec.h"

namespace berth {

struct ChildResult {
  pid_t pid = -1;      // > 0: the command runs, as leader of its own process group
  pid_t init_pid = 0;  // > 0: the first process of its PID namespace; kills all others if it ends
  // Otherwise: false = the command exists but could not run (exit_code 126 or 127); true = an
  // earlier step failed, by the node's fault or the job's.
  bool refused = false;
  bool own_fault = false;
  int exit_code = 0;
  std::string message;
};

// stdout_fd and stderr_fd become the command's; stdin is /dev/null. The kernel kills the command
// when this process dies. Must be called from a single-threaded process.
ChildResult StartChild(const SupervisorSpec& spec, int stdout_fd, int stderr_fd);

// The same on a terminal, which becomes the controlling one of a new session that the command
// leads. stdin, too, is the terminal.
ChildResult StartOnTerminal(const SupervisorSpec& spec, int terminal_fd);

// Starts one of the node's hooks: outside the task's control group, as this process's user. An
// error is the node's fault.
ChildResult StartHook(const SupervisorSpec& spec, const std::vector<std::string>& argv,
                      int output_fd);
// The same of a program of the node's own, with nothing of the task in its environment.
ChildResult StartTool(const SupervisorSpec& spec, const std::vector<std::string>& argv,
                      int output_fd);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_
