// Isolates a task from the others on its node: user, control group, processes, /tmp, shared memory,
// scratch directory, image, and the node's hooks. Fills in the supervisor's specification.
//
//   TASK_DIR/  work/ tmp/ var-tmp/ scratch/   the task user's; all but work/ go with the task
//              bundle/config.json layer/ root/    of a task in an image
//              volumes/ mounts/               of a task with volumes (volumes.h)
//              berth/ or door/in/             of the task's socket; the agent's
//              containers/NAME/               of its containers (task_containers.h)
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
#include "clients/agent/kept_directories.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/task_users.h"

namespace berth {

// In the task's directory: what a task in an image changes in it.
inline constexpr char kLayer[] = "/layer";
inline constexpr char kHostsFile[] = "/hosts";  // what it sees as /etc/hosts

class Isolation {
 public:
  // From the agent's configuration, complete and checked: node_name, task_user, allow_root_tasks,
  // task_users, cgroups, shared_tmp, shared_pid, shared_shm, scratch_directory, hooks, images.
  // FAILED_PRECONDITION if control groups or namespaces are required and cannot be used, NOT_FOUND
  // for a task_user that does not exist.
  static absl::StatusOr<std::unique_ptr<Isolation>> Create(const config::v1::Agent& config,
                                                           const std::string& state_directory);

  // Whether the task can run as it requests, and as which user.
  absl::StatusOr<TaskUser> Check(const v1::TaskLaunch& launch) const;
  // The image that must be unpacked before Fill, as a request for berth-image; nothing for a task
  // without an image or with an unpacked one. `directory`: the task's; exists.
  absl::StatusOr<std::optional<agent::v1::ImageRequest>> UnpackRequest(
      const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory) const;
  // Where images are.
  std::string ImageCache() const;
  // The host of images that name none; may be empty.
  const std::string& DefaultRegistry() const { return config_.images().default_registry(); }
  // The request to clean up the image cache; nothing without images.
  std::optional<agent::v1::ImageRequest> CleanupRequest() const;
  // The starting point of a task in an image.
  absl::StatusOr<TaskImage> Image(const TaskId& id, const v1::TaskLaunch& launch,
                                  const std::string& directory) const;
  // Releases the images of all other tasks, for leftovers of an earlier agent.
  void ReleaseImagesExcept(const std::set<TaskId>& tasks) const;
  // Creates the directories of a task in `directory`, which exists.
  absl::Status MakeDirectories(const TaskId& id, const v1::TaskLaunch& launch,
                               const std::string& directory) const;
  // Fills in the task's user, home, scratch and tmp for its environment.
  absl::Status FillContext(const TaskId& id, const v1::TaskLaunch& launch,
                           EnvironmentContext* context) const;
  // Completes `spec`, which has argv, env and directory, with user, group, mounts, hooks and, for
  // an image, the container. Creates the control group. FillAsContainer follows for containers.
  absl::Status Fill(const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory,
                    const Environment& hook_environment, SupervisorSpec* spec) const;
  // The same for a container with this launch and directory; `task`: the complete specification of
  // its task, which removes the container's directories in the end.
  absl::Status FillAsContainer(const TaskId& id, const v1::TaskLaunch& launch,
                               const std::string& directory, SupervisorSpec* task,
                               SupervisorSpec* spec) const;
  // The environment's user and home in this image.
  void AdaptContext(const TaskImage& image, const TaskUser& user,
                    EnvironmentContext* context) const;
  // Adapts the context of a task's environment to one of its containers.
  void AdaptContext(const v1::TaskLaunch& launch, const std::string& directory,
                    EnvironmentContext* context) const;
  // The directory of the task's socket, for the agent; empty: its path would be too long. And how
  // the task names the server behind it.
  std::string Door(const v1::TaskLaunch& launch, const std::string& directory) const;
  std::string ServerInside(const v1::TaskLaunch& launch, const std::string& directory) const;
  // Where the task writes to, with its limits.
  std::vector<DiskArea> DiskAreas(const TaskId& id, const v1::TaskLaunch& launch,
                                  const std::string& directory) const;
  // What jobs keep here between two attempts.
  KeptFiles& kept() const { return *kept_; }
  // Removes the task's directory and its other data on disks.
  void RemoveDirectory(const std::string& directory) const;
  // Removes shared memory of jobs without tasks here, left by an earlier agent that was killed.
  void RemoveUnusedSharedMemory() const;
  // Removes what is outside of the task's directory, once no process of the task remains or if it
  // was never started.
  void Remove(const TaskId& id) const;

  // Call when the node's devices may have changed; `found` is the result of the last discovery.
  void SetDevices(const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                  const DiscoveredDevices& found);

  // Warnings for operators: why there are no control groups, or no private /tmp. Empty: everything
  // that was requested is available.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string description() const;

  // Tasks have control groups, and can be frozen.
  bool HasGroups() const { return groups_ != nullptr; }

 private:
  Isolation(const config::v1::Agent& config, std::string state_directory);
  absl::Status Init();
  absl::Status InitGroups();
  absl::Status InitNamespaces();
  void InitDisk();
  void InitLayers();
  void InitUserMaps();
  absl::Status SetQuotas(const TaskId& id, const v1::TaskLaunch& launch,
                         const std::string& directory) const;
  void FillNamespaces(const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory,
                      const TaskUser& user, SupervisorSpec* spec) const;
  void FillNotify(const v1::TaskLaunch& launch, const std::string& directory, const TaskUser& user,
                  SupervisorSpec* spec) const;
  absl::Status MakeDoor(const v1::TaskLaunch& launch, const std::string& directory) const;
  bool HasOwnSharedMemory(const v1::TaskLaunch& launch) const;
  bool HasOwnMounts(const v1::TaskLaunch& launch) const;
  absl::Status CheckVolumesOf(const v1::TaskLaunch& launch, const TaskUser& user) const;
  absl::Status MakeMounts(const TaskId& id, const v1::TaskLaunch& launch,
                          const std::string& directory, const TaskUser& user) const;
  bool HasLayer(const v1::TaskLaunch& launch) const;
  bool MapsUser(const TaskImage& image, const TaskUser& user) const;
  absl::Status FillLayer(const TaskId& id, const v1::TaskLaunch& launch,
                         const std::string& directory, const TaskUser& user,
                         SupervisorSpec* spec) const;
  std::string Scratch(const TaskId& id, const std::string& directory) const;
  void WarnOfLongPaths();
  std::string ImageLink(const TaskId& id, const std::string& directory) const;
  void RemoveImageLinks(const TaskId& id) const;
  absl::Status MakeContainerPlace(const v1::TaskLaunch& launch, const std::string& directory) const;
  void AddContainerDirectories(const v1::Container& container, const std::string& task_directory,
                               std::vector<std::string>* directories) const;
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
  bool has_namespaces_ = false;  // tasks can have mounts of their own
  bool layers_ = false;          // tasks can write into their images
  bool user_maps_ = false;       // tasks see themselves as the users that their images name
  bool quotas_ = false;          // the kernel limits usage of the state directory's disk
  bool scratch_quotas_ = false;  // and of the scratch directory's
  const std::unique_ptr<KeptDirectories> kept_;
  std::unique_ptr<ControlGroups> groups_;
  NvidiaFiles nvidia_;
  std::vector<DeviceAccess> access_;  // of devices that are not NVIDIA's
  std::vector<std::string> warnings_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_ISOLATION_H_
