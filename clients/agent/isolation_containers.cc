// Isolation: containers of a task, each with files of its own.
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/isolation.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/volumes.h"

namespace berth {
namespace {

constexpr const char* kOwnDirectories[] = {"/work", "/tmp", "/var-tmp"};

absl::Status MakePlace(const std::string& path, mode_t mode, bool may_exist) {
  if (mkdir(path.c_str(), mode) == 0 || (may_exist && errno == EEXIST)) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("create ", path));
}

}  // namespace

// Before the quotas: they apply to these directories.
absl::Status Isolation::MakeContainerPlace(const v1::TaskLaunch& launch,
                                           const std::string& directory) const {
  const absl::StatusOr<TaskUser> user = Check(launch);
  if (!user.ok()) return user.status();
  absl::Status status = MakePlace(directory.substr(0, directory.rfind('/')), 0711, true);
  if (status.ok()) status = MakePlace(directory, 0711, false);
  for (const char* own : kOwnDirectories) {
    if (status.ok()) status = MakeOwned(directory + own, *user);
  }
  if (status.ok() && HasLayer(launch)) status = MakePlace(directory + kLayer, 0700, false);
  return status;
}

void Isolation::AddContainerDirectories(const v1::Container& container,
                                        const std::string& task_directory,
                                        std::vector<std::string>* directories) const {
  const std::string directory = ContainerDirectory(task_directory, container.name());
  for (const char* own : kOwnDirectories) directories->push_back(directory + own);
  if (layers_ && !container.image().empty()) directories->push_back(directory + kLayer);
}

void Isolation::AdaptContext(const v1::TaskLaunch& launch, const std::string& directory,
                             EnvironmentContext* context) const {
  context->tmp = !launch.image().empty() || private_tmp_ ? "/tmp" : directory + "/tmp";
  context->notify_socket.clear();  // what the command reports counts
}

absl::Status Isolation::FillAsContainer(const TaskId& id, const v1::TaskLaunch& launch,
                                        const std::string& directory, SupervisorSpec* task,
                                        SupervisorSpec* spec) const {
  const absl::StatusOr<TaskUser> user = Check(launch);
  if (!user.ok()) return user.status();
  spec->user = user->account;
  spec->allow_root = task->allow_root;
  if (spec->directory.empty())
    spec->directory = launch.image().empty() ? directory + "/work" : kImageWork;
  FillNamespaces(id, launch, directory, *user, spec);
  spec->sweep_uid = 0;  // its task does that
  spec->sweep_record.clear();
  FillVolumes(config_, launch, *user, directory, Scratch(id, directory), spec);
  if (!launch.image().empty()) {
    absl::Status status = FillContainer(id, launch, directory, *user, spec);
    if (!status.ok()) return status;
  }
  spec->groups = task->groups;
  spec->memory_bytes = task->memory_bytes;
  spec->memory_nodes = task->memory_nodes;
  spec->data_limit_bytes = task->data_limit_bytes;
  spec->cpus = task->cpus;
  for (const char* own : {"/tmp", "/var-tmp", "/volumes", kLayer})
    task->remove.push_back(directory + own);
  if (!launch.image().empty())
    task->remove.push_back(ImageCache() + "/used/" + ImageLink(id, directory));
  return absl::OkStatus();
}

}  // namespace berth
