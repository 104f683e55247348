// The hosts file of a task: that of the node, and a line for each task of its job that has names.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_HOSTS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_HOSTS_H_

#include <cstdint>
#include <string>

namespace berth {

// `path` has lines "ADDRESS NAME...". Replaces addresses that are names by what they mean on this
// node, and puts the node's own file in front. An address that means nothing, or that was not asked
// for before `deadline_ns` (CLOCK_BOOTTIME), becomes a comment. Blocks while names are resolved, at
// most as long as one of them takes beyond the deadline. Returns an errno.
int CompleteHosts(const std::string& path, int64_t deadline_ns);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_HOSTS_H_
