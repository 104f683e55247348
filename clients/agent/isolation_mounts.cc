// Isolation: mounts that a job chooses: volumes, and the writable layer of its image.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"
#include "clients/agent/isolation.h"
#include "clients/agent/supervisor/mounts.h"
#include "clients/agent/task_files.h"
#include "clients/agent/volumes.h"

namespace berth {
namespace {

constexpr char kUpper[] = "/upper";
constexpr char kWork[] = "/work";
constexpr char kImage[] = "/image";  // the image, as the layer's lower directory
constexpr char kRoot[] = "/root";

uint32_t Swapped(uint32_t id, uint32_t one, uint32_t other) {
  return id == one ? other : id == other ? one : id;
}

absl::Status MakeForRoot(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  if (chmod(path.c_str(), mode) != 0) return ErrnoStatus(errno, absl::StrCat("chmod ", path));
  return absl::OkStatus();
}

}  // namespace

// Only the node's file system can be the reason against it, so it is tried once.
void Isolation::InitLayers() {
  const bool images =
      !config_.images().directory().empty() || config_.images().registries_size() > 0;
  if (!images || !has_namespaces_) return;
  const std::string trial = state_directory_ + "/layer-trial";
  RemoveTree(trial);
  absl::Status made;
  for (const char* part : {"", kUpper, kWork, kImage, kRoot}) {
    if (made.ok()) made = MakeForRoot(trial + part, 0700);
  }
  const int error = made.ok() ? TryWritableLayer(trial, trial + kImage) : 0;
  RemoveTree(trial);
  layers_ = made.ok() && error == 0;
  InitUserMaps();
  if (layers_) return;
  warnings_.push_back(absl::StrCat("tasks cannot write into their images: overlayfs on ",
                                   state_directory_, ": ",
                                   made.ok() ? std::strerror(error) : made.message()));
}

void Isolation::InitUserMaps() {
  if (!config_.images().map_users()) return;
  const int error = TryUserNamespaces();
  user_maps_ = layers_ && error == 0;
  if (user_maps_) return;
  warnings_.push_back(absl::StrCat(
      "tasks do not see themselves as the users that their images name (images.mapUsers): ",
      error != 0 ? std::strerror(error) : "it needs images that tasks can write into"));
}

// On the node the task remains `user`, which is not root.
bool Isolation::MapsUser(const TaskImage& image, const TaskUser& user) const {
  return user_maps_ && image.uid != 0 && user.uid != 0;
}

void Isolation::AdaptContext(const TaskImage& image, const TaskUser& user,
                             EnvironmentContext* context) const {
  if (!MapsUser(image, user)) return;
  context->user = image.user;
  context->home = image.home;
}

bool Isolation::HasLayer(const v1::TaskLaunch& launch) const {
  return layers_ && !launch.image().empty();
}

absl::Status Isolation::CheckVolumesOf(const v1::TaskLaunch& launch, const TaskUser& user) const {
  if (launch.volumes().empty()) return absl::OkStatus();
  if (!has_namespaces_) {
    return BlameJob(absl::FailedPreconditionError(
        "volumes require an agent that runs as root and may create namespaces"));
  }
  return CheckVolumes(config_, launch, user,
                      {state_directory_, config_.scratch_directory(), ImageCache()});
}

absl::Status Isolation::MakeMounts(const TaskId& id, const v1::TaskLaunch& launch,
                                   const std::string& directory, const TaskUser& user) const {
  absl::Status status;
  if (HasLayer(launch)) {
    for (const char* part : {kUpper, kWork, kImage}) {
      if (status.ok()) status = MakeForRoot(directory + kLayer + part, 0755);
    }
    if (status.ok()) status = MakeForRoot(directory + kRoot, 0700);
  }
  return status.ok() ? MakeVolumes(launch, user, directory, Scratch(id, directory)) : status;
}

// The layer's root becomes that of the container, so it looks like the image's.
absl::Status Isolation::FillLayer(const TaskId& id, const v1::TaskLaunch& launch,
                                  const std::string& directory, const TaskUser& user,
                                  SupervisorSpec* spec) const {
  const auto image = Image(id, launch, directory);
  if (!image.ok()) return image.status();
  spec->root_lower = image->rootfs;
  struct stat made;
  if (lstat((directory + kRoot).c_str(), &made) != 0) return absl::OkStatus();  // it has none
  spec->root = directory + kRoot;
  spec->root_layer = directory + kLayer;
  spec->owner = user.account;
  if (MapsUser(*image, user)) {
    spec->image_uid = image->uid;
    spec->image_gid = image->gid;
  }
  struct stat root;
  const std::string upper = spec->root_layer + kUpper;
  if (stat(image->rootfs.c_str(), &root) != 0 ||
      chown(upper.c_str(), Swapped(root.st_uid, static_cast<uid_t>(spec->image_uid), user.uid),
            Swapped(root.st_gid, static_cast<gid_t>(spec->image_gid), user.gid)) != 0 ||
      chmod(upper.c_str(), root.st_mode & 07777) != 0)
    return ErrnoStatus(errno, absl::StrCat("take the permissions of ", image->rootfs));
  return absl::OkStatus();
}

}  // namespace berth
