// Finds files that a task writes outside its own directories. Nothing else records their owner, so
// the open files of its processes are read.
#ifndef BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_
#define BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace berth {

inline constexpr size_t kMaxWrittenFiles = 1000;          // remembered per task
inline constexpr int64_t kLeastWrittenBytes = 256 << 10;  // smaller ones are ignored

class WrittenFiles {
 public:
  struct Sum {
    int64_t bytes = 0;
    std::string largest;  // path
  };

  // Records which files the processes of this control group have open for writing. Files created
  // before `began` are ignored: when they grew is unknown.
  void Note(const std::string& group, absl::Time began);
  // Sums the remaining files on this device that are not below these directories.
  Sum Outside(uint64_t device, const std::vector<std::string>& directories) const;

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // device and inode
  void NoteProcess(const std::string& process, absl::Time began);

  std::map<Key, std::string> paths_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_
