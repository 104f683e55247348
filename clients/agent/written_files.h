// Files that a task writes outside of its own directories. Nobody else tells whose they are, so its
// processes are asked what they have open.
#ifndef BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_
#define BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace berth {

inline constexpr size_t kMaxWrittenFiles = 1000;          // that are remembered of one task
inline constexpr int64_t kLeastWrittenBytes = 256 << 10;  // smaller ones are passed over

class WrittenFiles {
 public:
  struct Sum {
    int64_t bytes = 0;
    std::string largest;  // path
  };

  // Remembers which files the processes of this control group have open for writing. Those made
  // before `began` are passed over: who knows when they grew.
  void Note(const std::string& group, absl::Time began);
  // What those of this device use that are there still, and are not below these directories.
  Sum Outside(uint64_t device, const std::vector<std::string>& directories) const;

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // device and inode
  void NoteProcess(const std::string& process, absl::Time began);

  std::map<Key, std::string> paths_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_WRITTEN_FILES_H_
