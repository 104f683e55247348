#include "clients/agent/disk_space.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

namespace berth {
namespace {

constexpr int64_t kFewInodes = 1000;
constexpr int64_t kFewInodesPart = 100;

struct Walk {
  absl::FunctionRef<void(const struct stat&)> see;
  dev_t device = 0;
  int64_t entries = 0;

  // `fd` is closed.
  void Below(int fd, int depth) {
    DIR* listing = fdopendir(fd);
    if (listing == nullptr) {
      close(fd);
      return;
    }
    while (const dirent* entry = readdir(listing)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries > kMaxDiskEntries) break;
      struct stat info;
      if (fstatat(dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (info.st_dev != device) continue;
      see(info);
      if (!S_ISDIR(info.st_mode) || depth >= kMaxDiskDepth) continue;
      const int below = openat(dirfd(listing), name.c_str(),
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
      if (below >= 0) Below(below, depth + 1);
    }
    closedir(listing);
  }
};

}  // namespace

int64_t DiskSpace::least_free_inodes() const {
  return std::min(kFewInodes, inodes / kFewInodesPart);
}

int64_t DiskSpace::InodesOf(int64_t bytes) const {
  if (inodes == 0 || total_bytes <= 0) return 0;
  const double part = static_cast<double>(bytes) / static_cast<double>(total_bytes);
  return static_cast<int64_t>(part * static_cast<double>(inodes));
}

std::optional<DiskSpace> ReadDiskSpace(const std::string& path) {
  struct statvfs info;
  if (statvfs(path.c_str(), &info) != 0) return std::nullopt;
  const auto unit = static_cast<int64_t>(info.f_frsize);
  return DiskSpace{.total_bytes = static_cast<int64_t>(info.f_blocks) * unit,
                   .free_bytes = static_cast<int64_t>(info.f_bavail) * unit,
                   .used_bytes = static_cast<int64_t>(info.f_blocks - info.f_bfree) * unit,
                   .inodes = static_cast<int64_t>(info.f_files),
                   .free_inodes = static_cast<int64_t>(info.f_favail)};
}

void WalkDisk(const std::string& directory, absl::FunctionRef<void(const struct stat&)> see) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  if (fd < 0) return;
  if (fstat(fd, &info) != 0) {
    close(fd);
    return;
  }
  see(info);
  Walk walk{.see = see, .device = info.st_dev};
  walk.Below(fd, 0);
}

}  // namespace berth
