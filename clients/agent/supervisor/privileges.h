// What a process gives up, and is held to, before it becomes a task's.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_

#include <pwd.h>

#include <string>
#include <vector>

#include "clients/agent/supervisor/spec.h"

namespace berth {

// Default actions for all signals, none blocked.
void ResetSignals();

// Supplementary groups, group, user, then never any more privileges than these (no_new_privs: a
// set-user-id program gains nothing). An errno; `user` null: as who this process is.
int BecomeUser(const passwd* user);

// RLIMIT_DATA and the CPUs, where no control group bounds them. An errno.
int ApplyLimits(const SupervisorSpec& spec);

// As exec wants them: pointers into `strings`, then null.
std::vector<char*> Pointers(const std::vector<std::string>& strings);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_
