#include "clients/agent/disk_space.h"

#include <sys/statvfs.h>

#include <algorithm>

namespace berth {
namespace {

constexpr int64_t kFewInodes = 1000;
constexpr int64_t kFewInodesPart = 100;

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

}  // namespace berth
