// What keeps a task apart from the others on its node: its user, control group, processes, /tmp,
// shared memory, scratch directory, image, and the node's own programs around it. Fills in what a
// supervisor is told.
//
//   TASK_DIR/  work/ tmp/ var-tmp/ scratch/   of the task's user; all but work/ go with the task
//              bundle/config.json             of a task in an image
#ifndef BERTH_CLIENTS_AGENT_ISOLATION_H_
#define BERTH_CLIENTS_AGENT_ISOLATION_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/agent/v1/image.pb.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/control_groups.h"
#include "clients/agent/device_nodes.h"
#include "clients/agent/disk_watch.h"
#include "clients/agent/environment.h"
#include "clients/agent/images.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/task_users.h"

namespace berth {

class Isolation {
 public:
  // Of the agent's configuration, complete and checked: node_name, task_user, allow_root_tasks,
  // task_users, cgroups, shared_tmp, shared_pid, shared_shm, scratch_directory, hooks, images.
  // FAILED_PRECONDITION if control groups or namespaces are required and cannot be used, NOT_FOUND
  // for a task_user that is not there.
  static absl::StatusOr<std::unique_ptr<Isolation>> Create(const config::v1::Agent& config,
                                                           const std::string& state_directory);

  // Whether the task can be run as it asks, and the user it would run as.
  absl::StatusOr<TaskUser> Check(const v1::TaskLaunch& launch) const;
  // The image that must be unpacked before Fill, and what berth-image is told for that; nothing for
  // a task without image or with an unpacked one.
  absl::StatusOr<std::optional<agent::v1::ImageRequest>> ImageToUnpack(
      const TaskId& id, const v1::TaskLaunch& launch) const;
  // That the cache of images is cleaned up; nothing without images.
  std::optional<agent::v1::ImageRequest> ImageCleaning() const;
  // What a task in an image starts from.
  absl::StatusOr<TaskImage> Image(const TaskId& id, const v1::TaskLaunch& launch) const;
  // Images that tasks other than these use may go from now on. For what an earlier agent left.
  void KeepImagesOf(const std::set<TaskId>& tasks) const;
  // The directories of a task, in `directory`, which is there.
  absl::Status MakeDirectories(const TaskId& id, const v1::TaskLaunch& launch,
                               const std::string& directory) const;
  // Where the task finds them, for its environment: user, home, scratch, tmp.
  absl::Status FillContext(const TaskId& id, const v1::TaskLaunch& launch,
                           EnvironmentContext* context) const;
  // Turns what to run (argv, env and directory of `spec`) into how: user, group, mounts, hooks,
  // and, for an image, the container. Makes the control group.
  absl::Status Fill(const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory,
                    const Environment& hook_environment, SupervisorSpec* spec) const;
  // What the task writes to, and how much of that it may use.
  std::vector<DiskArea> DiskAreas(const TaskId& id, const v1::TaskLaunch& launch,
                                  const std::string& directory) const;
  // Removes the task's directory, and what else it has on disks.
  void RemoveDirectory(const std::string& directory) const;
  // Of jobs that have no task here any more, if an earlier agent was killed before it removed it.
  void RemoveUnusedSharedMemory() const;
  // What is outside of the task's directory, when nothing of the task is left or it was never
  // started.
  void Remove(const TaskId& id) const;

  // The node's devices may be others now; `found` is where the last discovery told of them.
  void SetDevices(const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                  const DiscoveredDevices& found);

  // What operators should know: why there are no control groups, or no private /tmp. Empty: all
  // that was asked for is there.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string description() const;

 private:
  Isolation(const config::v1::Agent& config, std::string state_directory);
  absl::Status Init();
  absl::Status InitGroups();
  absl::Status InitNamespaces();
  void InitDisk();
  absl::Status SetQuotas(const TaskId& id, const v1::TaskLaunch& launch,
                         const std::string& directory) const;
  void FillNamespaces(const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory,
                      const TaskUser& user, SupervisorSpec* spec) const;
  std::string SharedMemoryDirectory(const TaskId& id) const;
  std::string Scratch(const TaskId& id, const std::string& directory) const;
  std::string ImageCache() const;
  std::string ImageLink(const TaskId& id) const;
  agent::v1::ImageRequest ImageDefaults() const;
  absl::Status FillGroup(const TaskId& id, const v1::TaskLaunch& launch,
                         SupervisorSpec* spec) const;
  void FillHooks(const Environment& environment, SupervisorSpec* spec) const;
  absl::Status WriteBundle(const TaskId& id, const v1::TaskLaunch& launch,
                           const std::string& directory, const TaskUser& user,
                           const SupervisorSpec& spec) const;
  absl::Status FillContainer(const TaskId& id, const v1::TaskLaunch& launch,
                             const std::string& directory, const TaskUser& user,
                             SupervisorSpec* spec) const;

  const config::v1::Agent config_;
  const std::string state_directory_;
  const TaskUsers users_;
  bool private_tmp_ = false;
  bool private_pids_ = false;
  bool private_shm_ = false;
  bool quotas_ = false;          // the kernel bounds what tasks use of the state directory's disk
  bool scratch_quotas_ = false;  // and of the scratch directory's
  std::unique_ptr<ControlGroups> groups_;
  NvidiaFiles nvidia_;
  std::vector<DeviceAccess> access_;  // of devices that are not NVIDIA's
  std::vector<std::string> warnings_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_ISOLATION_H_
