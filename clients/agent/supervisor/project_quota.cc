#include "clients/agent/supervisor/project_quota.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int64_t kQuotaBlock = 1024;      // unit of limits
constexpr uint32_t kMaxProjects = 100000;  // checked for a free one

// An open directory.
class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  ~OpenDirectory() {
    if (fd_ >= 0) close(fd_);
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Linux 5.14: addresses the file system by one of its files instead of its device.
int Quota(int fd, int command, uint32_t project, void* argument) {
  const auto full = static_cast<unsigned>(QCMD(command, PRJQUOTA));
  return syscall(SYS_quotactl_fd, fd, full, project, argument) == 0 ? 0 : errno;
}

int SetProject(const std::string& path, uint32_t project, bool inherit) {
  const OpenDirectory directory(path);
  fsxattr attributes{};
  if (directory.fd() < 0 || ioctl(directory.fd(), FS_IOC_FSGETXATTR, &attributes) != 0)
    return errno;
  attributes.fsx_projid = project;
  if (inherit) attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  return ioctl(directory.fd(), FS_IOC_FSSETXATTR, &attributes) == 0 ? 0 : errno;
}

int SetLimit(int fd, uint32_t project, int64_t bytes, int64_t inodes) {
  if_dqblk limits{};
  limits.dqb_bhardlimit = static_cast<uint64_t>((bytes + kQuotaBlock - 1) / kQuotaBlock);
  limits.dqb_bsoftlimit = limits.dqb_bhardlimit;
  limits.dqb_ihardlimit = limits.dqb_isoftlimit = static_cast<uint64_t>(inodes);
  limits.dqb_valid = QIF_LIMITS;
  return Quota(fd, Q_SETQUOTA, project, &limits);
}

// A line of mountinfo: "36 35 98:0 /mnt1 /mnt2 rw,noatime - ext4 /dev/root rw,prjquota".
bool IsMountedWithQuotas(int fd) {
  struct stat info;
  std::string text;
  if (fstat(fd, &info) != 0 || ReadWholeFile("/proc/self/mountinfo", &text) != 0) return false;
  std::string device(1, ' ');
  device += std::to_string(major(info.st_dev));
  device += ':';
  device += std::to_string(minor(info.st_dev));
  device += ' ';
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find(device) != std::string::npos && line.find("prjquota") != std::string::npos)
      return true;
    at = end + 1;
  }
  return false;
}

bool IsFree(int fd, uint32_t project) {
  if_dqblk found{};
  const int error = Quota(fd, Q_GETQUOTA, project, &found);
  return error == ENOENT || error == ESRCH ||
         (error == 0 && found.dqb_curspace == 0 && found.dqb_bhardlimit == 0);
}

}  // namespace

// Checks mount options: a file system mounted without them may still count projects.
bool HasProjectQuotas(const std::string& path) {
  const OpenDirectory directory(path);
  if (directory.fd() < 0 || !IsMountedWithQuotas(directory.fd())) return false;
  if_dqblk found{};
  const int error = Quota(directory.fd(), Q_GETQUOTA, 0, &found);
  return error == 0 || error == ENOENT;
}

int SetProjectQuota(const std::string& owner, const std::vector<std::string>& directories,
                    uint32_t wish, int64_t bytes, int64_t inodes) {
  const OpenDirectory place(directories.empty() ? owner : directories.front());
  if (place.fd() < 0) return errno;
  uint32_t project = 0;
  for (uint32_t i = 0; i < kMaxProjects && project == 0; ++i) {
    if (wish + i != 0 && IsFree(place.fd(), wish + i)) project = wish + i;
  }
  if (project == 0) return EBUSY;
  if (const int error = SetLimit(place.fd(), project, bytes, inodes); error != 0) return error;
  if (const int error = SetProject(owner, project, false); error != 0) return error;
  for (const std::string& directory : directories) {
    if (const int error = SetProject(directory, project, true); error != 0) return error;
  }
  return 0;
}

ProjectUse ReadProjectUse(const std::string& path) {
  const OpenDirectory directory(path);
  fsxattr attributes{};
  if (directory.fd() < 0 || ioctl(directory.fd(), FS_IOC_FSGETXATTR, &attributes) != 0) return {};
  if_dqblk found{};
  if (attributes.fsx_projid == 0 ||
      Quota(directory.fd(), Q_GETQUOTA, attributes.fsx_projid, &found) != 0) {
    return {};
  }
  return {.project = attributes.fsx_projid,
          .used_bytes = static_cast<int64_t>(found.dqb_curspace),
          .limit_bytes = static_cast<int64_t>(found.dqb_bhardlimit) * kQuotaBlock,
          .used_files = static_cast<int64_t>(found.dqb_curinodes),
          .limit_files = static_cast<int64_t>(found.dqb_ihardlimit)};
}

int ClearProjectQuota(const std::string& file_system, uint32_t project) {
  const OpenDirectory directory(file_system);
  if (directory.fd() < 0) return errno;
  return project == 0 ? 0 : SetLimit(directory.fd(), project, 0, 0);
}

std::string ReachedQuotaText(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const ProjectUse use = ReadProjectUse(directory);
    if (use.limit_files > 0 && use.used_files >= use.limit_files)
      return "reached its limit of files: " + std::to_string(use.limit_files);
    if (use.limit_bytes <= 0 || use.used_bytes < use.limit_bytes / 100 * 99) continue;
    return "used all of its " + SizeText(use.limit_bytes) + " of scratch";
  }
  return "";
}

std::string SizeText(int64_t bytes) {
  struct Unit {
    int64_t bytes;
    const char* name;
  };
  char text[64];
  for (const Unit& unit : {Unit{int64_t{1} << 40, "TiB"}, Unit{1 << 30, "GiB"},
                           Unit{1 << 20, "MiB"}, Unit{1 << 10, "KiB"}}) {
    if (bytes < unit.bytes) continue;
    const double value = static_cast<double>(bytes) / static_cast<double>(unit.bytes);
    std::snprintf(text, sizeof text, bytes % unit.bytes == 0 ? "%.0f %s" : "%.1f %s", value,
                  unit.name);
    return text;
  }
  std::snprintf(text, sizeof text, "%lld bytes", static_cast<long long>(bytes));
  return text;
}

}  // namespace berth
