// The containers of a task on its node. Each has a directory TASK_DIR/containers/NAME, and is made
// as a task is, from a launch in which the container stands in place of the command:
//
//   TASK_DIR/containers/NAME/   work/ tmp/ var-tmp/ volumes/ mounts/ bundle/ layer/ root/, and what
//                               its supervisor needs (supervisor/containers.h)
//
// Functions that make a task take the directory of either.
#ifndef BERTH_CLIENTS_AGENT_TASK_CONTAINERS_H_
#define BERTH_CLIENTS_AGENT_TASK_CONTAINERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

inline constexpr char kContainerVariable[] = "BERTH_CONTAINER";

// The launch of one container.
v1::TaskLaunch LaunchOf(const v1::TaskLaunch& task, const v1::Container& container);

std::string ContainerDirectory(const std::string& task_directory, const std::string& container);
// The task's directory, given its own or a container's; and the container's name, "" for a task's.
std::string TaskDirectoryOf(const std::string& directory);
std::string ContainerNameOf(const std::string& directory);

// The directory of a container that a message names. INVALID_ARGUMENT for what is no name.
absl::StatusOr<std::string> NamedDirectory(const std::string& task_directory,
                                           const std::string& container);

// Keeps what must be known of them while the task runs: names and images.
void ShortenContainers(v1::TaskLaunch* launch);

SupervisorSpec::Kind KindOf(const v1::Container& container);
int64_t TimeoutMsOf(const v1::Container& container);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_CONTAINERS_H_
