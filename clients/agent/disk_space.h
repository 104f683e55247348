// Free space of a file system, in bytes and inodes.
#ifndef BERTH_CLIENTS_AGENT_DISK_SPACE_H_
#define BERTH_CLIENTS_AGENT_DISK_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace berth {

struct DiskSpace {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // available to users other than root
  int64_t used_bytes = 0;
  int64_t inodes = 0;  // 0: unlimited
  int64_t free_inodes = 0;

  // 1,000, or a hundredth of the inodes on a small file system.
  int64_t least_free_inodes() const;
  bool FewInodes() const { return inodes != 0 && free_inodes <= least_free_inodes(); }
  // The inodes in proportion to these bytes. 0: unlimited.
  int64_t InodesOf(int64_t bytes) const;
};
// For the file system that contains `path`; none, with errno set, if it cannot be read.
std::optional<DiskSpace> ReadDiskSpace(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_SPACE_H_
