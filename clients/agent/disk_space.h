// How full a file system is, in bytes and in inodes.
#ifndef BERTH_CLIENTS_AGENT_DISK_SPACE_H_
#define BERTH_CLIENTS_AGENT_DISK_SPACE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace berth {

struct DiskSpace {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // for who is not root
  int64_t used_bytes = 0;
  int64_t inodes = 0;  // 0: there is no bound
  int64_t free_inodes = 0;

  // 1,000, or a hundredth of a small file system's.
  int64_t least_free_inodes() const;
  bool FewInodes() const { return inodes != 0 && free_inodes <= least_free_inodes(); }
  // The part of the inodes that is as large as this part of the bytes. 0: there is no bound.
  int64_t InodesOf(int64_t bytes) const;
};
// Of the file system that holds this; none, with errno, if it cannot be asked.
std::optional<DiskSpace> ReadDiskSpace(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_SPACE_H_
