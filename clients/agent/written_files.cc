#include "clients/agent/written_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/disk_use.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int64_t kStatBlockBytes = 512;
constexpr int kMaxDescriptors = 100'000;  // per process

// Line "flags:\t0100001" of fdinfo, in octal.
bool IsOpenForWriting(const std::string& process, const std::string& descriptor) {
  std::string text;
  if (ReadWholeFile(absl::StrCat(process, "/fdinfo/", descriptor), &text) != 0) return false;
  const size_t at = text.find("flags:");
  if (at == std::string::npos) return false;
  const auto flags = std::strtol(text.c_str() + at + sizeof "flags:", nullptr, 8);
  return (flags & O_ACCMODE) != O_RDONLY;
}

// Not all file systems report this; otherwise all files of the task count.
bool WasMadeBefore(const struct statx& info, absl::Time began) {
  if ((info.stx_mask & STATX_BTIME) == 0) return false;
  return absl::FromUnixSeconds(info.stx_btime.tv_sec) + absl::Nanoseconds(info.stx_btime.tv_nsec) <
         began;
}

// The task's user may have put links into the path in the meantime: they are not followed.
int64_t BytesOf(const std::string& path, uint64_t device, uint64_t inode) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  if (fd < 0) return 0;
  struct stat info;
  const bool same = fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode;
  close(fd);
  return same ? int64_t{info.st_blocks} * kStatBlockBytes : 0;
}

}  // namespace

void WrittenFiles::Note(const std::string& group, absl::Time began) {
  std::string processes;
  if (group.empty() || ReadWholeFile(group + "/cgroup.procs", &processes) != 0) return;
  for (const absl::string_view pid : absl::StrSplit(processes, '\n', absl::SkipEmpty()))
    NoteProcess(absl::StrCat("/proc/", pid), began);
}

void WrittenFiles::NoteProcess(const std::string& process, absl::Time began) {
  DIR* listing = opendir((process + "/fd").c_str());
  if (listing == nullptr) return;
  int seen = 0;
  while (const dirent* entry = readdir(listing)) {
    if (++seen > kMaxDescriptors || paths_.size() >= kMaxWrittenFiles) break;
    struct statx info;
    if (statx(dirfd(listing), entry->d_name, 0, STATX_BASIC_STATS | STATX_BTIME, &info) != 0 ||
        !S_ISREG(info.stx_mode) || info.stx_nlink == 0 ||
        static_cast<int64_t>(info.stx_blocks) * kStatBlockBytes < kLeastWrittenBytes)
      continue;
    const Key key = {makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino};
    if (paths_.contains(key) || WasMadeBefore(info, began)) continue;
    if (!IsOpenForWriting(process, entry->d_name)) continue;
    std::error_code error;
    const auto path =
        std::filesystem::read_symlink(absl::StrCat(process, "/fd/", entry->d_name), error);
    if (!error) paths_[key] = path;
  }
  closedir(listing);
}

WrittenFiles::Sum WrittenFiles::Outside(uint64_t device,
                                        const std::vector<std::string>& directories) const {
  std::map<Key, int64_t> bytes;
  for (const auto& [key, path] : paths_) {
    const int64_t found = key.first == device ? BytesOf(path, key.first, key.second) : 0;
    if (found > 0) bytes[key] = found;
  }
  if (bytes.empty()) return {};
  DiskUseOf(directories, [&](const struct stat& info) { bytes.erase({info.st_dev, info.st_ino}); });
  Sum sum;
  int64_t most = 0;
  for (const auto& [key, used] : bytes) {
    sum.bytes += used;
    if (used > most) sum.largest = paths_.at(key);
    most = std::max(most, used);
  }
  return sum;
}

}  // namespace berth
