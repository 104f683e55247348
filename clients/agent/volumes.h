// Volumes of tasks: what the node's configuration allows, what the agent makes of them before a
// task starts, and what its supervisor mounts (supervisor/mounts.h).
//
//   TASK_DIR/volumes/N/      the files of volume N; only the agent's user can enter volumes/
//   TASK_DIR/mounts/N        of a task in an image: where volume N is mounted, for the runtime
//   SCRATCH/volume-N/        scratch of volume N; the task user's. Named: SCRATCH/named.NAME/; of a
//                            container: SCRATCH/of.CONTAINER.N/
#ifndef BERTH_CLIENTS_AGENT_VOLUMES_H_
#define BERTH_CLIENTS_AGENT_VOLUMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/images.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/task_users.h"

namespace berth {

// Whether the node offers the hostPaths of these volumes to the task; and for a task without an
// image, whether all mount points exist and hide none of the agent's own directories (`own`). The
// job is to blame.
absl::Status CheckVolumes(const config::v1::Agent& config, const v1::TaskLaunch& launch,
                          const TaskUser& user, const std::vector<std::string>& own);
// Creates files and scratch directories of the volumes.
absl::Status MakeVolumes(const v1::TaskLaunch& launch, const TaskUser& user,
                         const std::string& directory, const std::string& scratch);
// Adds the volumes to the specification. Requires CheckVolumes.
void FillVolumes(const config::v1::Agent& config, const v1::TaskLaunch& launch,
                 const TaskUser& user, const std::string& directory, const std::string& scratch,
                 SupervisorSpec* spec);
// Whether no volume is inside of one of `mounted`, absolute paths in the image that the runtime
// mounts before volumes, as links of the image resolve them: it is root and creates the volume's
// mount point there. The job is to blame.
absl::Status CheckImagePoints(const v1::TaskLaunch& launch, const std::string& rootfs,
                              const std::vector<std::string>& mounted);
// How the runtime mounts the volumes of a task in an image.
std::vector<Bind> VolumeBinds(const v1::TaskLaunch& launch, const std::string& directory);

// What is wrong with `volumes` of the configuration, for people; empty: nothing.
std::vector<std::string> VolumeProblems(const config::v1::Volumes& volumes);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_VOLUMES_H_
