// Forks and execs the command of one task, and tells what kept it from starting.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "clients/agent/supervisor/spec.h"

namespace berth {

struct ChildResult {
  pid_t pid = -1;  // > 0: the command runs, as leader of its own process group
  // Else: false = the command was there to be run, and could not (exit_code 126 or 127); true = it
  // did not come to that, by the node's fault, or the job's.
  bool refused = false;
  bool own_fault = false;
  int exit_code = 0;
  std::string message;
};

// stdout_fd and stderr_fd become the command's; stdin is /dev/null. The command is killed by the
// kernel when this process dies. Must be called from a process with one thread.
ChildResult StartChild(const SupervisorSpec& spec, int stdout_fd, int stderr_fd);

// A program of the node's own around the task: outside of its control group, as who this process
// is. What keeps it from starting is the node's fault.
ChildResult StartHook(const SupervisorSpec& spec, const std::vector<std::string>& argv,
                      int output_fd);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_CHILD_H_
