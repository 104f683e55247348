// Kills processes that outlived their supervisor.
#ifndef BERTH_CLIENTS_AGENT_LEFTOVERS_H_
#define BERTH_CLIENTS_AGENT_LEFTOVERS_H_

#include <sys/types.h>

#include <string>

namespace berth {

// Sends SIGKILL to every process of the session `session` (0 = none), and to every process with
// `marker` ("NAME=value") in its environment. Returns how many were found; call again until it is
// 0.
int KillLeftovers(const std::string& marker, pid_t session);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_LEFTOVERS_H_
