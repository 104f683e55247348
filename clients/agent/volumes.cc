#include "clients/agent/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"
#include "clients/agent/supervisor/mounts.h"
#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/task_files.h"

namespace berth {
namespace {

using config::v1::HostPath;

constexpr char kVolumes[] = "/volumes";
constexpr char kMounts[] = "/mounts";
constexpr char kTmp[] = "/tmp/";
constexpr mode_t kDefaultMode = 0644;
constexpr int kMaxHostPaths = 256;
constexpr int kMaxLinks = 40;

bool Within(absl::string_view path, absl::string_view directory) {
  return path == directory || directory == "/" ||
         absl::StartsWith(path, absl::StrCat(directory, "/"));
}

// Absolute, without empty parts, "." and "..", and without characters that a specification's text
// cannot hold.
bool IsCleanPath(absl::string_view path) {
  if (path.empty() || path[0] != '/') return false;
  if (path == "/") return true;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20) return false;
  }
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool IsIn(const std::string& one, const google::protobuf::RepeatedPtrField<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), one) != names.end();
}

// Entries are never inside one another, so at most one contains the path. Null: none does.
const HostPath* FindHostPath(const config::v1::Agent& config, const std::string& path) {
  for (const HostPath& one : config.volumes().host_paths()) {
    if (Within(path, one.path())) return &one;
  }
  return nullptr;
}

absl::Status Refusal(const v1::Volume& volume, absl::string_view why) {
  return BlameJob(absl::PermissionDeniedError(absl::StrCat("volume ", volume.path(), ": ", why)));
}

absl::Status CheckHostPath(const config::v1::Agent& config, const v1::TaskLaunch& launch,
                           const v1::Volume& volume, const TaskUser& user) {
  const std::string& path = volume.host_path();
  const HostPath* offered = IsCleanPath(path) ? FindHostPath(config, path) : nullptr;
  if (offered == nullptr) {
    return Refusal(volume, absl::StrCat("hostPath ", path, " is not below what this node offers ",
                                        "(volumes.hostPaths of its agent)"));
  }
  const auto refuse = [&](absl::string_view why) {
    return Refusal(volume, absl::StrCat("this node offers ", offered->path(), " ", why,
                                        " (volumes.hostPaths of its agent)"));
  };
  if (!IsIn(launch.queue(), offered->queues())) {
    return refuse(absl::StrCat("to jobs of other queues than ", launch.queue()));
  }
  if (!IsIn(user.name, offered->users())) {
    return refuse(absl::StrCat("to tasks of other users than ", user.name));
  }
  if (offered->read_only() && !volume.read_only()) return refuse("only with readOnly: true");
  return absl::OkStatus();
}

// The supervisor opens it again, with the rights of the task's user.
absl::Status CheckMountPoint(const v1::Volume& volume, const std::vector<std::string>& own) {
  for (const std::string& directory : own) {
    if (!directory.empty() &&
        (Within(volume.path(), directory) || Within(directory, volume.path())))
      return Refusal(volume, absl::StrCat("would hide the agent's directory ", directory));
  }
  if (access(volume.path().c_str(), F_OK) == 0 || errno == EACCES) return absl::OkStatus();
  return Refusal(volume,
                 "this path does not exist on the node; only a task in an image gets new mount "
                 "points");
}

// The runtime would create a mount point there, on the node.
absl::Status CheckImagePoint(const config::v1::Agent& config, const v1::Volume& volume) {
  if (absl::StartsWith(volume.path(), kTmp))
    return Refusal(volume, "is inside /tmp, where the task has a directory of its own");
  for (const std::string& bind : config.images().binds()) {
    if (!Within(volume.path(), bind) || volume.path() == bind) continue;
    return Refusal(volume, absl::StrCat("is inside ", bind,
                                        ", which this node mounts into all images (images.binds)"));
  }
  return absl::OkStatus();
}

// The path that `path` means in the image: its links are followed, those as well that lead to
// nothing yet. A circle ends somewhere in it, where the runtime refuses.
std::string ResolvedIn(int root, const std::string& path) {
  std::vector<std::string> left = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::reverse(left.begin(), left.end());
  std::string resolved;
  for (int links = 0; !left.empty();) {
    const std::string name = std::move(left.back());
    left.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      resolved.resize(resolved.empty() ? 0 : resolved.rfind('/'));
      continue;
    }
    absl::StrAppend(&resolved, "/", name);
    char target[PATH_MAX];
    const ssize_t n = readlinkat(root, resolved.c_str() + 1, target, sizeof target);
    if (n < 0 || ++links > kMaxLinks) continue;
    const std::string to(target, static_cast<size_t>(n));
    resolved.resize(absl::StartsWith(to, "/") ? 0 : resolved.rfind('/'));
    std::vector<std::string> names = absl::StrSplit(to, '/', absl::SkipEmpty());
    left.insert(left.end(), names.rbegin(), names.rend());
  }
  return resolved;
}

absl::Status GiveTo(const std::string& path, const TaskUser& user) {
  if (geteuid() != 0 || lchown(path.c_str(), user.uid, user.gid) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("chown ", path));
}

// Below a directory that only the agent's user can enter.
absl::Status MakeDirectory(const std::string& path, mode_t mode, const TaskUser& user) {
  if (mkdir(path.c_str(), mode) != 0)
    return errno == EEXIST ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("create ", path));
  if (chmod(path.c_str(), mode) != 0) return ErrnoStatus(errno, absl::StrCat("chmod ", path));
  return GiveTo(path, user);
}

// In a directory of the task's user, whose other processes may exchange what is in it: so with the
// rights of that user, and nothing is done to what the name means afterwards.
absl::Status MakeDirectoryOf(const TaskUser& user, const std::string& in, const std::string& name) {
  const int at = open(in.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (at < 0) return ErrnoStatus(errno, in);
  int error = 0;
  {
    const FileRights rights(user.uid, user.gid);
    if (mkdirat(at, name.c_str(), 0700) != 0) error = errno;
  }
  close(at);
  if (error == 0 || error == EEXIST) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("create ", in, "/", name));
}

mode_t ModeOf(const v1::VolumeFile& file) {
  if (file.mode().empty()) return kDefaultMode;
  return static_cast<mode_t>(std::strtoul(file.mode().c_str(), nullptr, 8)) & 0777;
}

absl::Status WriteVolumeFile(const std::string& path, const v1::VolumeFile& file,
                             const TaskUser& user) {
  absl::Status status = WriteTextFile(path, file.content(), ModeOf(file));
  if (!status.ok()) return status;
  if (chmod(path.c_str(), ModeOf(file)) != 0)
    return ErrnoStatus(errno, absl::StrCat("chmod ", path));
  return GiveTo(path, user);
}

// Names were checked by the server: relative, without "..", none of a file below another file.
absl::Status WriteVolumeFiles(const v1::FilesVolume& volume, const std::string& place,
                              const TaskUser& user) {
  if (volume.files_size() == 1 && volume.files(0).name().empty())
    return WriteVolumeFile(place, volume.files(0), user);
  absl::Status status = MakeDirectory(place, 0755, user);
  for (const v1::VolumeFile& file : volume.files()) {
    if (!IsCleanPath("/" + file.name())) return absl::InternalError("a volume's file has no name");
    for (size_t slash = file.name().find('/'); status.ok() && slash != std::string::npos;
         slash = file.name().find('/', slash + 1)) {
      status = MakeDirectory(absl::StrCat(place, "/", file.name().substr(0, slash)), 0755, user);
    }
    if (status.ok()) status = WriteVolumeFile(absl::StrCat(place, "/", file.name()), file, user);
    if (!status.ok()) return status;
  }
  return status;
}

// In the task's scratch directory, which its containers share. Names of containers and volumes have
// no '.'.
std::string ScratchOf(const v1::Volume& volume, int index, const std::string& directory) {
  if (!volume.scratch().name().empty()) return absl::StrCat("named.", volume.scratch().name());
  const std::string container = ContainerNameOf(directory);
  if (container.empty()) return absl::StrCat("volume-", index);
  return absl::StrCat("of.", container, ".", index);
}

// Never more than the memory that the task has, by its limit or because the node has no more.
int64_t TmpfsBytes(const config::v1::Agent& config, const v1::TaskLaunch& launch, int64_t wanted) {
  const int64_t most = launch.memory_bytes() > 0 ? launch.memory_bytes() : config.memory_bytes();
  const int64_t bytes = wanted > 0 ? wanted : config.memory_bytes() / 2;
  return most > 0 ? std::min(bytes, most) : bytes;
}

VolumeMount MountOf(const config::v1::Agent& config, const v1::TaskLaunch& launch, int index,
                    const std::string& directory, const std::string& scratch) {
  const v1::Volume& volume = launch.volumes(index);
  VolumeMount mount{.name = volume.path(), .at = volume.path(), .root = "", .below = ""};
  mount.read_only = volume.read_only();
  switch (volume.source_case()) {
    case v1::Volume::kHostPath: {
      const HostPath* offered = FindHostPath(config, volume.host_path());
      if (offered == nullptr) break;  // checked just before
      mount.root = offered->path();
      mount.below = volume.host_path().substr(
          std::min(mount.root == "/" ? 1 : mount.root.size() + 1, volume.host_path().size()));
      break;
    }
    case v1::Volume::kTmpfs:
      mount.bytes = TmpfsBytes(config, launch, volume.tmpfs().size_bytes());
      break;
    case v1::Volume::kScratch:
      mount.root = scratch;
      mount.below = ScratchOf(volume, index, directory);
      break;
    default:
      mount.root = directory + kVolumes;
      mount.below = absl::StrCat(index);
      mount.own = true;
      mount.read_only = true;
  }
  return mount;
}

}  // namespace

absl::Status CheckVolumes(const config::v1::Agent& config, const v1::TaskLaunch& launch,
                          const TaskUser& user, const std::vector<std::string>& own) {
  for (const v1::Volume& volume : launch.volumes()) {
    if (!IsCleanPath(volume.path()) || volume.path() == "/" ||
        volume.source_case() == v1::Volume::SOURCE_NOT_SET)
      return Refusal(volume, "this agent is too old for it, or it is not valid");
    absl::Status status;
    if (volume.has_host_path()) status = CheckHostPath(config, launch, volume, user);
    if (status.ok() && launch.image().empty()) status = CheckMountPoint(volume, own);
    if (status.ok() && !launch.image().empty()) status = CheckImagePoint(config, volume);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MakeVolumes(const v1::TaskLaunch& launch, const TaskUser& user,
                         const std::string& directory, const std::string& scratch) {
  if (launch.volumes().empty()) return absl::OkStatus();
  for (const char* name : {kVolumes, kMounts}) {
    const std::string path = directory + name;
    if (mkdir(path.c_str(), 0700) != 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  }
  for (int i = 0; i < launch.volumes_size(); ++i) {
    const v1::Volume& volume = launch.volumes(i);
    absl::Status status;
    if (volume.has_scratch()) {
      status = MakeDirectoryOf(user, scratch, ScratchOf(volume, i, directory));
    } else if (volume.has_files()) {
      status = WriteVolumeFiles(volume.files(), absl::StrCat(directory, kVolumes, "/", i), user);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void FillVolumes(const config::v1::Agent& config, const v1::TaskLaunch& launch,
                 const TaskUser& user, const std::string& directory, const std::string& scratch,
                 SupervisorSpec* spec) {
  for (int i = 0; i < launch.volumes_size(); ++i) {
    VolumeMount mount = MountOf(config, launch, i, directory, scratch);
    if (!launch.image().empty()) mount.at = absl::StrCat(directory, kMounts, "/", i);
    spec->volumes.push_back(EncodeVolume(mount));
  }
  if (!spec->volumes.empty()) spec->owner = user.account;
}

absl::Status CheckImagePoints(const v1::TaskLaunch& launch, const std::string& rootfs,
                              const std::vector<std::string>& mounted) {
  if (launch.volumes().empty()) return absl::OkStatus();
  const int root = open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return ErrnoStatus(errno, rootfs);
  absl::Status status;
  for (const std::string& point : mounted) {
    const std::string resolved = ResolvedIn(root, point);
    for (const v1::Volume& volume : launch.volumes()) {
      if (!status.ok() || volume.path() == resolved || !Within(volume.path(), resolved)) continue;
      status = Refusal(volume, absl::StrCat("is inside ", resolved, ", where the image has ", point,
                                            ", which is not the image's own"));
    }
  }
  close(root);
  return status;
}

std::vector<Bind> VolumeBinds(const v1::TaskLaunch& launch, const std::string& directory) {
  std::vector<Bind> binds;
  for (int i = 0; i < launch.volumes_size(); ++i) {
    const v1::Volume& volume = launch.volumes(i);
    binds.push_back({absl::StrCat(directory, kMounts, "/", i), volume.path(),
                     !volume.read_only() && !volume.has_files(), false});
  }
  return binds;
}

std::vector<std::string> VolumeProblems(const config::v1::Volumes& volumes) {
  std::vector<std::string> problems;
  const auto& paths = volumes.host_paths();
  if (paths.size() > kMaxHostPaths) {
    return {
        absl::StrCat("volumes.hostPaths: at most ", kMaxHostPaths, " entries, has ", paths.size())};
  }
  for (int i = 0; i < paths.size(); ++i) {
    const std::string at = absl::StrCat("volumes.hostPaths[", i, "].path: ");
    if (!IsCleanPath(paths[i].path())) {
      problems.push_back(absl::StrCat(at, "must be an absolute path without \"..\", is \"",
                                      paths[i].path(), "\""));
      continue;
    }
    for (int j = 0; j < paths.size(); ++j) {
      if (i == j || !Within(paths[i].path(), paths[j].path())) continue;
      if (paths[i].path() == paths[j].path() && j > i) continue;  // reported for the other one
      problems.push_back(absl::StrCat(at, paths[i].path(), " is inside ", paths[j].path(),
                                      ", which is offered, too"));
    }
  }
  return problems;
}

}  // namespace berth
