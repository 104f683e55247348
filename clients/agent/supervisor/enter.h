// berth-supervisor --exec: one more command inside a task that runs (berth exec). A process of its
// own, spawned by the agent, that puts itself where the task is and becomes the command.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_

#include <string>
#include <vector>

namespace berth {

// Joins the control group and the namespaces of the task in `directory`, becomes its user,
// with its environment and working directory, and executes `command`; with `terminal`, standard
// input is one and becomes the controlling one. Returns only on an error, with the exit code: 127
// if there is no such command, 126 otherwise; standard error says why.
int ExecInTask(const std::string& directory, bool terminal,
               const std::vector<std::string>& command);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
