#include "clients/agent/supervisor/mounts.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "clients/agent/supervisor/id_swap.h"
#include "clients/agent/supervisor/privileges.h"

namespace berth {
namespace {

constexpr char kSeparator = '\n';  // in no path of a volume
constexpr size_t kVolumeFields = 7;
constexpr uint64_t kVolumeFlags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

FileRights RightsOf(const passwd* user) {
  return user == nullptr ? FileRights(geteuid(), getegid())
                         : FileRights(user->pw_uid, user->pw_gid);
}

int Error() { return -errno; }

// A negative errno, or a descriptor.
int OpenBelow(const std::string& directory, const std::string& below) {
  const int root = open(directory.c_str(), O_PATH | O_CLOEXEC);
  if (root < 0) return Error();
  if (below.empty()) return root;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, root, below.c_str(), &how, sizeof how);
  const int error = errno;
  close(root);
  return fd < 0 ? -error : static_cast<int>(fd);
}

// A mount of its own of what `fd` names, which is closed.
int CloneOf(int fd, bool read_only) {
  const int tree =
      open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const int error = errno;
  close(fd);
  if (tree < 0) return -error;
  // Mounts that the machine makes below it later are seen inside, but not the other way round. They
  // would come with their own flags, so not in what is read-only.
  struct mount_attr flags {};
  flags.attr_set = kVolumeFlags | (read_only ? uint64_t{MOUNT_ATTR_RDONLY} : 0);
  flags.propagation = read_only ? MS_PRIVATE : MS_SLAVE;
  if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &flags, sizeof flags) == 0) return tree;
  const int failed = Error();
  close(tree);
  return failed;
}

int NewTmpfs(int64_t bytes, const passwd* user) {
  const int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (context < 0) return Error();
  const auto set = [&](const char* key, const std::string& value) {
    return fsconfig(context, FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
  };
  bool ok = set("size", std::to_string(bytes)) && set("mode", "0700");
  if (user != nullptr) {
    ok = ok && set("uid", std::to_string(user->pw_uid)) && set("gid", std::to_string(user->pw_gid));
  }
  ok = ok && fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const int mounted = ok ? fsmount(context, FSMOUNT_CLOEXEC, kVolumeFlags) : -1;
  const int error = errno;
  close(context);
  return mounted < 0 ? -error : mounted;
}

mode_t TypeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

bool IsDirectory(int fd) { return TypeOf(fd) == S_IFDIR; }

std::string Escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || c == ':' || c == ',') text.push_back('\\');
    text.push_back(c);
  }
  return text;
}

std::string MapText(const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& range : ranges) {
    text += std::to_string(range.inside) + " " + std::to_string(range.outside) + " " +
            std::to_string(range.count) + "\n";
  }
  return text;
}

// What is the image's becomes that of the task's user, and the other way round.
struct OwnerSwap {
  uid_t image_uid = 0, owner_uid = 0;
  gid_t image_gid = 0, owner_gid = 0;
  bool Changes() const { return image_uid != owner_uid || image_gid != owner_gid; }
};

int WriteMap(pid_t pid, const char* name, const std::string& map) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, map.data(), map.size()) < 0 ? errno : 0;
  close(fd);
  return error;
}

// A child in a new user namespace that only waits for its end: the namespace is there as soon as
// this returns. As fork.
pid_t CloneIntoUserNamespace() {
  const pid_t parent = getpid();
  const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid != 0) return static_cast<pid_t>(pid);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (getppid() == parent) pause();
  _exit(0);
}

// A user namespace for an id-mapped mount. A negative errno, or a descriptor.
int NewIdMap(const OwnerSwap& swap) {
  const pid_t pid = CloneIntoUserNamespace();
  if (pid < 0) return Error();
  int result = -WriteMap(pid, "uid_map", MapText(SwapIds(swap.image_uid, swap.owner_uid)));
  if (result == 0)
    result = -WriteMap(pid, "gid_map", MapText(SwapIds(swap.image_gid, swap.owner_gid)));
  if (result == 0) {
    result = open(("/proc/" + std::to_string(pid) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC);
    if (result < 0) result = Error();
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return result;
}

// Mounts the image at `at`, with other owners. Returns an errno.
int MountOwned(const std::string& lower, const OwnerSwap& swap, const std::string& at) {
  const int map = NewIdMap(swap);
  if (map < 0) return -map;
  struct mount_attr flags {};
  flags.attr_set = MOUNT_ATTR_IDMAP;
  flags.userns_fd = static_cast<uint64_t>(map);
  const int tree = open_tree(AT_FDCWD, lower.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const bool ok = tree >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &flags, sizeof flags) == 0 &&
                  move_mount(tree, "", AT_FDCWD, at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
  const int error = ok ? 0 : errno;
  if (tree >= 0) close(tree);
  close(map);
  return error;
}

// Nothing in the layer outlives the task, so nothing in it is ever synced. Kernels before 5.19, and
// some file systems, cannot change the owners: there, files keep those that they have.
int MountLayer(const std::string& image, const OwnerSwap& swap, const std::string& layer,
               const std::string& at) {
  const bool changes = swap.Changes();
  const std::string owned = layer + "/image";
  const std::string& lower = changes && MountOwned(image, swap, owned) == 0 ? owned : image;
  const auto mount_over = [&](const std::string& below) {
    const std::string options = "lowerdir=" + Escaped(below) +
                                ",upperdir=" + Escaped(layer + "/upper") +
                                ",workdir=" + Escaped(layer + "/work") + ",volatile";
    return mount("berth", at.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) == 0
               ? 0
               : errno;
  };
  const int error = mount_over(lower);
  return error == EINVAL && &lower == &owned ? mount_over(image) : error;
}

// A mount point in an image, without links on the way: the runtime, which is root, must not be led
// into another volume. Nothing else is mounted there yet, so what is made is in the task's layer.
// Returns an errno; ENOENT: it does not exist and must not be made.
int MakePointIn(const std::string& rootfs, const std::string& path, bool directory, bool make) {
  int at = open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  int error = at < 0 ? errno : 0;
  for (size_t begin = 1; error == 0 && begin <= path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, slash - begin);
    const bool last = slash == path.size();
    if (make && (!last || directory)) {
      if (mkdirat(at, name.c_str(), 0755) != 0 && errno != EEXIST) error = errno;
    } else if (make) {
      const int file = openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (file < 0 && errno != EEXIST) error = errno;
      if (file >= 0) close(file);
    }
    const int next = error != 0 ? -1 : openat(at, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (error == 0 && next < 0) error = errno;
    close(at);
    at = next;
    struct stat info {};
    if (error == 0 && fstat(at, &info) != 0) error = errno;
    if (error == 0 && S_ISLNK(info.st_mode)) error = ELOOP;
    if (error == 0 && S_ISDIR(info.st_mode) != (!last || directory)) error = ENOTDIR;
    begin = slash + 1;
  }
  if (at >= 0) close(at);
  return error;
}

int LeaveMachinesMounts() {
  if (unshare(CLONE_NEWNS) != 0) return errno;
  return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 ? 0 : errno;
}

}  // namespace

std::string EncodeVolume(const VolumeMount& volume) {
  std::string text;
  for (const std::string& field :
       {volume.name, volume.at, volume.root, volume.below, std::string(volume.own ? "1" : "0"),
        std::string(volume.read_only ? "1" : "0"), std::to_string(volume.bytes)}) {
    if (!text.empty()) text.push_back(kSeparator);
    text += field;
  }
  return text;
}

bool DecodeVolume(std::string_view text, VolumeMount* volume) {
  std::vector<std::string> fields(1);
  for (const char c : text) {
    if (c == kSeparator)
      fields.emplace_back();
    else
      fields.back().push_back(c);
  }
  if (fields.size() != kVolumeFields) return false;
  *volume = {.name = fields[0],
             .at = fields[1],
             .root = fields[2],
             .below = fields[3],
             .own = fields[4] == "1",
             .read_only = fields[5] == "1",
             .bytes = std::atoll(fields[6].c_str())};
  return true;
}

VolumeMounts::~VolumeMounts() {
  for (const int fd : sources_) {
    if (fd >= 0) close(fd);
  }
}

MountError VolumeMounts::Open() {
  for (size_t i = 0; i < spec_.volumes.size(); ++i) {
    const int index = static_cast<int>(i);
    VolumeMount volume;
    if (!DecodeVolume(spec_.volumes[i], &volume)) return {index, MountError::kMount, EINVAL};
    int source = -1;
    if (volume.root.empty()) {
      source = NewTmpfs(volume.bytes, user_);
    } else {
      {
        const FileRights rights = RightsOf(volume.own ? nullptr : user_);
        source = OpenBelow(volume.root, volume.below);
      }
      if (source < 0) return {index, MountError::kOpen, -source};
      if (!IsDirectory(source) && TypeOf(source) != S_IFREG) {
        close(source);
        return {index, MountError::kOpen, ENOTSUP};
      }
      source = CloneOf(source, volume.read_only);
    }
    if (source < 0) return {index, MountError::kMount, -source};
    sources_.push_back(source);
  }
  return {};
}

MountError VolumeMounts::MakePoints() const {
  const bool layer = !spec_.root.empty();
  for (size_t i = 0; i < sources_.size(); ++i) {
    VolumeMount volume;
    DecodeVolume(spec_.volumes[i], &volume);  // as before
    const int error = MakePointIn(layer ? spec_.root : spec_.root_lower, volume.name,
                                  IsDirectory(sources_[i]), layer);
    if (error != 0) return {static_cast<int>(i), MountError::kPoint, error};
  }
  return {};
}

// A negative errno, or a descriptor.
int VolumeMounts::OpenPoint(const std::string& path, int source) const {
  if (spec_.container) {
    if (IsDirectory(source)) {
      if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error();
    } else {
      const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      if (file < 0) return Error();
      close(file);
    }
  }
  const FileRights rights = RightsOf(spec_.container ? nullptr : user_);
  const int point = open(path.c_str(), O_PATH | O_CLOEXEC);
  return point < 0 ? Error() : point;
}

MountError VolumeMounts::Attach() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const int index = static_cast<int>(i);
    VolumeMount volume;
    DecodeVolume(spec_.volumes[i], &volume);  // as before
    const int point = OpenPoint(volume.at, sources_[i]);
    if (point < 0) return {index, MountError::kPoint, -point};
    const bool attached = move_mount(sources_[i], "", point, "",
                                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    const int error = errno;
    close(point);
    if (!attached) return {index, MountError::kAttach, error};
  }
  return {};
}

MountError EnterContainerMounts(const SupervisorSpec& spec) {
  if (spec.root.empty() && spec.volumes.empty()) return {};
  const passwd* user = spec.owner.empty() ? nullptr : getpwnam(spec.owner.c_str());
  if (!spec.owner.empty() && user == nullptr) return {-1, MountError::kOpen, ESRCH};
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  if (getgroups(static_cast<int>(groups.size()), groups.data()) < 0)
    return {-1, MountError::kOpen, errno};
  if (const int error = TakeGroups(user); error != 0) return {-1, MountError::kOpen, error};
  VolumeMounts volumes(spec, user);
  const MountError failed = volumes.Open();
  if (setgroups(groups.size(), groups.data()) != 0) return {-1, MountError::kOpen, errno};
  if (failed.error != 0) return failed;
  if (const int error = LeaveMachinesMounts(); error != 0) return {-1, MountError::kMount, error};
  if (!spec.root.empty()) {
    OwnerSwap swap;
    if (user != nullptr && user->pw_uid != 0) {
      swap = {.image_uid = static_cast<uid_t>(spec.image_uid),
              .owner_uid = user->pw_uid,
              .image_gid = static_cast<gid_t>(spec.image_gid),
              .owner_gid = user->pw_gid};
    }
    const int error = MountLayer(spec.root_lower, swap, spec.root_layer, spec.root);
    if (error != 0) return {-1, MountError::kMount, error};
  }
  const MountError points = volumes.MakePoints();
  return points.error != 0 ? points : volumes.Attach();
}

bool IsJobsMountError(const MountError& error) {
  if (error.volume < 0) return false;
  switch (error.error) {
    case EPERM:
      return error.step == MountError::kOpen || error.step == MountError::kPoint;
    case ENOENT:
    case EACCES:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
      return error.step != MountError::kMount;
    case ENOTSUP:
      return error.step == MountError::kOpen;  // neither a directory nor a file
    default:
      return false;
  }
}

std::string MountErrorText(const SupervisorSpec& spec, const MountError& error) {
  const std::string why = std::strerror(error.error);
  VolumeMount volume;
  const bool known = error.volume >= 0 && static_cast<size_t>(error.volume) < spec.volumes.size() &&
                     DecodeVolume(spec.volumes[static_cast<size_t>(error.volume)], &volume);
  if (!known) return "cannot mount the writable layer of the task's image: " + why;
  const std::string source = volume.root + (volume.below.empty() ? "" : "/" + volume.below);
  const std::string start = "volume " + volume.name + ": ";
  if (error.error == ENOSYS) return start + "volumes need Linux 5.12";
  switch (error.step) {
    case MountError::kOpen:
      if (error.error == ENOTSUP) return start + source + " is neither a directory nor a file";
      if (error.error != EXDEV) return start + "cannot open " + source + ": " + why;
      return start + source + " is a link that leads out of " + volume.root +
             " (volumes.hostPaths of the node's agent)";
    case MountError::kPoint:
      if (spec.container && error.error == ELOOP)
        return start + "the image has a link on the way to this path; write where it leads";
      if (spec.container && error.error == ENOENT)
        return start + "the image has no such path, and this node cannot add one";
      if (error.error == ENOTDIR && spec.container)
        return start + "the image has a file where a directory is needed, or the other way round";
      if (error.error != ENOENT) return start + "cannot mount there: " + why;
      return start +
             "this path does not exist on the node; only a task in an image gets new mount points";
    case MountError::kAttach:
      if (error.error != ENOTDIR) break;
      return start + "a directory cannot be mounted over a file, nor a file over a directory";
    default:
      break;
  }
  return start + "cannot mount it: " + why;
}

int TryWritableLayer(const std::string& directory, const std::string& lower) {
  const pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    if (const int error = LeaveMachinesMounts(); error != 0) _exit(error);
    _exit(MountLayer(lower, OwnerSwap(), directory, directory + "/root"));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

int TryUserNamespaces() {
  const int map = NewIdMap({.image_uid = 1, .owner_uid = 2, .image_gid = 1, .owner_gid = 2});
  if (map < 0) return -map;
  close(map);
  return 0;
}

}  // namespace berth
