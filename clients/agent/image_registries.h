// Which image of which registry a task needs, by images.registries of the agent's configuration.
#ifndef BERTH_CLIENTS_AGENT_IMAGE_REGISTRIES_H_
#define BERTH_CLIENTS_AGENT_IMAGE_REGISTRIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/agent/v1/image.pb.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/task_users.h"

namespace berth {

// In the task's directory, until its image is there: the credentials that the job brought.
inline constexpr char kRegistryAuth[] = "/registry-auth";

// For berth-image. The credentials that the job brings are read as its user, and written to a file
// in `directory`, the task's, that only the agent can read. The job is to blame for a name that is
// none, a registry that is not configured, and a file that cannot be read.
absl::StatusOr<agent::v1::Pull> PullOf(const config::v1::Images& images,
                                       const v1::TaskLaunch& launch, const TaskUser& user,
                                       const std::string& directory);

// What is wrong with images.registries, for people; empty: nothing.
std::vector<std::string> RegistryProblems(const config::v1::Images& images);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGE_REGISTRIES_H_
