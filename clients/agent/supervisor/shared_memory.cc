#include "clients/agent/supervisor/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "clients/agent/supervisor/file_lock.h"

namespace berth {
namespace {

int MakeDirectory(const std::string& path, mode_t mode) {
  return mkdir(path.c_str(), mode) == 0 || errno == EEXIST ? 0 : errno;
}

bool IsMounted(const std::string& path, long magic) {
  struct statfs info;
  return statfs(path.c_str(), &info) == 0 && info.f_type == magic;
}

int64_t SizeOf(const std::string& path) {
  struct statfs info;
  if (statfs(path.c_str(), &info) != 0) return 0;
  return static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_bsize);
}

// After a crash, a directory without its mount is on the state directory's file system, which may
// itself be a tmpfs. It is a mount if its device differs from its parent's.
bool IsMountPoint(const std::string& path) {
  struct stat own, parent;
  return stat(path.c_str(), &own) == 0 && stat((path + "/..").c_str(), &parent) == 0 &&
         own.st_dev != parent.st_dev;
}

// `shared`: with tasks whose limits count, too.
int MountFiles(const std::string& path, bool shared, int64_t bytes, int64_t most) {
  const bool there = IsMountPoint(path);
  const int64_t size = std::min(bytes + (there && shared ? SizeOf(path) : 0), most);
  const std::string options =
      (there ? "" : "mode=1777,") + std::string("size=") + std::to_string(size);
  unsigned long flags = MS_NOSUID | MS_NODEV;
  if (there) flags |= MS_REMOUNT;
  return mount("berth-shm", path.c_str(), "tmpfs", flags, options.c_str()) == 0 ? 0 : errno;
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (users_ >= 0) close(users_);
}

int SharedMemory::Hold(int64_t bytes, int64_t most) {
  const FileLock lock(SiblingLockPath(directory_));
  if (lock.error() != 0) return lock.error();
  if (const int error = MakeDirectory(directory_, 0700); error != 0) return error;
  if (const int error = MakeDirectory(files(), 0700); error != 0) return error;
  users_ = open((directory_ + "/users").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (users_ < 0) return errno;
  const bool shared = flock(users_, LOCK_EX | LOCK_NB) != 0;
  if (flock(users_, LOCK_SH) != 0) return errno;
  int error = MountFiles(files(), shared, bytes, most);
  // More than fits this task alone is kept: it keeps the limit that it has.
  if (error == EINVAL && !shared) error = MountFiles(files(), true, 0, most);
  return error;
}

int SharedMemory::EnterIpc() const {
  const FileLock lock(SiblingLockPath(directory_));
  if (lock.error() != 0) return lock.error();
  const std::string path = directory_ + "/ipc";
  const int fd = open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = 0;
  if (IsMounted(path, NSFS_MAGIC)) {
    if (setns(fd, CLONE_NEWIPC) != 0) error = errno;
  } else if (unshare(CLONE_NEWIPC) != 0 ||
             mount("/proc/self/ns/ipc", path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    error = errno;
  }
  close(fd);
  return error;
}

bool SharedMemory::IsKept() const {
  const size_t slash = directory_.rfind('/');
  const std::string mark =
      directory_.substr(0, slash) + "/../keep" + directory_.substr(slash) + kKeptMemoryMark;
  return access(mark.c_str(), F_OK) == 0;
}

// The exclusive lock is granted only if no other supervisor has a shared one.
void SharedMemory::Release() {
  const FileLock lock(SiblingLockPath(directory_));
  const std::string users = directory_ + "/users";
  if (users_ < 0) users_ = open(users.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool last = users_ < 0 || flock(users_, LOCK_EX | LOCK_NB) == 0;
  if (last && !IsKept()) {
    umount2((directory_ + "/ipc").c_str(), MNT_DETACH);
    umount2(files().c_str(), MNT_DETACH);
    for (const char* file : {"/ipc", "/users"}) unlink((directory_ + file).c_str());
    rmdir(files().c_str());
    rmdir(directory_.c_str());
  }
  if (users_ >= 0) close(std::exchange(users_, -1));
}

}  // namespace berth
