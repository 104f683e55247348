// The few things that the journal asks of a disk, so that a simulation can be one that fails.
#ifndef BERTH_CLIENTS_AGENT_DISK_H_
#define BERTH_CLIENTS_AGENT_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Errors everywhere: RESOURCE_EXHAUSTED for a full disk or quota, NOT_FOUND, INTERNAL with the
// kernel's words.
class Disk {
 public:
  class File {
   public:
    virtual ~File() = default;
    // All of it, at the end; on an error any part may have been written.
    virtual absl::Status Append(absl::string_view data) = 0;
    virtual absl::Status Truncate(uint64_t size) = 0;
    virtual absl::Status Sync() = 0;
  };
  virtual ~Disk() = default;
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Created if need be; `truncate` empties it.
  virtual absl::StatusOr<std::unique_ptr<File>> OpenAppend(const std::string& path,
                                                           bool truncate) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes names in this directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
};

// The machine's. Thread-safe; its files are not.
Disk& SystemDisk();

// An errno as a status: "WHAT: text".
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_H_
