// Measures the disk usage of files.
#ifndef BERTH_CLIENTS_AGENT_DISK_USE_H_
#define BERTH_CLIENTS_AGENT_DISK_USE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

struct stat;

namespace berth {

inline constexpr int64_t kMaxDiskEntries = 4'000'000;  // per walk; the rest is not counted
inline constexpr int kMaxDiskDepth = 512;              // maximum depth of directories

struct DiskUse {
  int64_t bytes = 0;
  int64_t files = 0;      // and directories
  bool too_deep = false;  // there are directories more than kMaxDiskDepth deep
};

// Usage below these directories, which are on one file system. Links and other file systems are not
// followed; a file with several names counts once.
DiskUse DiskUseOf(const std::vector<std::string>& directories);
// The same, and calls back for each file.
DiskUse DiskUseOf(const std::vector<std::string>& directories,
                  absl::FunctionRef<void(const struct stat&)> see);

// Usage of unlinked files that processes of this control group have open.
int64_t UnlinkedBytes(const std::string& group, uint64_t device);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_USE_H_
