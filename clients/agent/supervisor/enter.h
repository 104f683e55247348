// berth-supervisor --exec: runs one more command inside a running task (berth exec). A separate
// process, spawned by the agent, that joins the task and becomes the command.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "clients/agent/supervisor/spec.h"

struct passwd;

namespace berth {

// The spec and status of a task whose command runs. Returns an errno.
int ReadRunningTask(const std::string& directory, SupervisorSpec* spec, SupervisorStatus* status);
// The user of that name; null for the empty name, which is this process's own. Returns an errno:
// EPERM for root where tasks must not run as root.
int FindTaskUser(const SupervisorSpec& spec, const std::string& name, const passwd** user);

// Joins the control group and the namespaces of the task in `directory`, becomes its user with its
// environment and working directory, and executes `command`. With `terminal`, standard input is a
// terminal and becomes the controlling one. Returns only on an error, with the exit code: 127 if
// there is no such command, 126 otherwise; standard error has the reason.
int ExecInTask(const std::string& directory, bool terminal,
               const std::vector<std::string>& command);

// berth-supervisor --connect: a TCP connection to a port of the task's loopback address, made in
// the task's control group and network namespace as its user, so that it reaches nothing that the
// task itself could not. Standard input is a SOCK_SEQPACKET: it gets one packet, with the
// connection (SCM_RIGHTS), or with the reason why there is none. Returns the exit code.
int ConnectInTask(const std::string& directory, uint16_t port);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_ENTER_H_
