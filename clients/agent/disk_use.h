// How much of a disk files use.
#ifndef BERTH_CLIENTS_AGENT_DISK_USE_H_
#define BERTH_CLIENTS_AGENT_DISK_USE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

struct stat;

namespace berth {

inline constexpr int64_t kMaxDiskEntries = 4'000'000;  // of one walk; the rest counts 0
inline constexpr int kMaxDiskDepth = 512;              // of directories; likewise

struct DiskUse {
  int64_t bytes = 0;
  int64_t files = 0;      // and directories
  bool too_deep = false;  // there are directories more than kMaxDiskDepth deep
};

// Of what is below these directories, which are on one file system. Links and other file systems
// are not followed; a file with several names counts once.
DiskUse DiskUseOf(const std::vector<std::string>& directories);
// The same, and shows each file.
DiskUse DiskUseOf(const std::vector<std::string>& directories,
                  absl::FunctionRef<void(const struct stat&)> see);

// What files use that processes of this control group have open and nobody has a name for.
int64_t UnlinkedBytes(const std::string& group, uint64_t device);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_USE_H_
