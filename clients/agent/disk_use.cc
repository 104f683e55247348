#include "clients/agent/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

int64_t BlockBytes(const struct stat& info) { return int64_t{info.st_blocks} * 512; }

class Walk {
 public:
  explicit Walk(absl::FunctionRef<void(const struct stat&)> see) : see_(see) {}
  void Add(const std::string& directory) {
    const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0) return;
    if (fstat(fd, &info) != 0) {
      close(fd);
      return;
    }
    device_ = info.st_dev;
    Count(info);
    AddBelow(fd, 0);
  }
  const DiskUse& use() const { return use_; }

 private:
  void Count(const struct stat& info) {
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1 && !seen_.insert(info.st_ino).second) return;
    use_.bytes += BlockBytes(info);
    ++use_.files;
    see_(info);
  }

  // Closes `fd`.
  void AddBelow(int fd, int depth) {
    DIR* listing = fdopendir(fd);
    if (listing == nullptr) {
      close(fd);
      return;
    }
    while (const dirent* entry = readdir(listing)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > kMaxDiskEntries) break;
      struct stat info;
      if (fstatat(dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (info.st_dev != device_) continue;
      Count(info);
      if (!S_ISDIR(info.st_mode)) continue;
      use_.too_deep |= depth >= kMaxDiskDepth;
      if (depth < kMaxDiskDepth) AddDirectory(dirfd(listing), name, depth + 1);
    }
    closedir(listing);
  }

  void AddDirectory(int above, const std::string& name, int depth) {
    const int fd =
        openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) AddBelow(fd, depth);
  }

  const absl::FunctionRef<void(const struct stat&)> see_;
  dev_t device_ = 0;
  int64_t entries_ = 0;
  absl::flat_hash_set<ino_t> seen_;  // of files with several names
  DiskUse use_;
};

}  // namespace

DiskUse DiskUseOf(const std::vector<std::string>& directories) {
  return DiskUseOf(directories, [](const struct stat&) {});
}

DiskUse DiskUseOf(const std::vector<std::string>& directories,
                  absl::FunctionRef<void(const struct stat&)> see) {
  Walk walk(see);
  for (const std::string& directory : directories) walk.Add(directory);
  return walk.use();
}

int64_t UnlinkedBytes(const std::string& group, uint64_t device) {
  std::string processes;
  if (group.empty() || ReadWholeFile(group + "/cgroup.procs", &processes) != 0) return 0;
  std::set<ino_t> seen;
  int64_t bytes = 0, entries = 0;
  for (const absl::string_view pid : absl::StrSplit(processes, '\n', absl::SkipEmpty())) {
    const std::string directory = absl::StrCat("/proc/", pid, "/fd");
    DIR* listing = opendir(directory.c_str());
    if (listing == nullptr) continue;
    while (const dirent* entry = readdir(listing)) {
      struct stat info;
      if (++entries > kMaxDiskEntries) break;
      if (fstatat(dirfd(listing), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) continue;
      if (info.st_nlink != 0 || info.st_dev != device || !seen.insert(info.st_ino).second) continue;
      bytes += BlockBytes(info);
    }
    closedir(listing);
  }
  return bytes;
}

}  // namespace berth
