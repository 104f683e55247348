// Host names of tasks (TaskGroup.host_names), as lines of a hosts file.
#ifndef BERTH_CLIENTS_AGENT_HOST_NAMES_H_
#define BERTH_CLIENTS_AGENT_HOST_NAMES_H_

#include <string>

#include "berth/v1/agent.pb.h"
#include "clients/agent/environment.h"
#include "clients/agent/task_id.h"

namespace berth {

// "ADDRESS NAME..." for each task of the job that has names and a place, by index. The address may
// be a name: the supervisor resolves it (supervisor/hosts.h).
std::string HostsText(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                      const EnvironmentContext& context);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HOST_NAMES_H_
