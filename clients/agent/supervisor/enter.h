// berth-supervisor --exec: runs one more command inside a running task (berth exec). A separate
// process, spawned by the agent, that joins the task and becomes the command.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_

#include <string>
#include <vector>

namespace berth {

// Joins the control group and the namespaces of the task in `directory`, becomes its user with its
// environment and working directory, and executes `command`. With `terminal`, standard input is a
// terminal and becomes the controlling one. Returns only on an error, with the exit code: 127 if
// there is no such command, 126 otherwise; standard error has the reason.
int ExecInTask(const std::string& directory, bool terminal,
               const std::vector<std::string>& command);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
