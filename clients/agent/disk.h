// The disk operations of the journal, so that a simulation can make them fail.
#ifndef BERTH_CLIENTS_AGENT_DISK_H_
#define BERTH_CLIENTS_AGENT_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Errors: RESOURCE_EXHAUSTED for a full disk or quota, NOT_FOUND, or INTERNAL with the kernel's
// error text.
class Disk {
 public:
  class File {
   public:
    virtual ~File() = default;
    // Appends all of `data`; on an error, any part may have been written.
    virtual absl::Status Append(absl::string_view data) = 0;
    virtual absl::Status Truncate(uint64_t size) = 0;
    virtual absl::Status Sync() = 0;
  };
  virtual ~Disk() = default;
  virtual absl::StatusOr<std::string> ReadFile(const std::string& path) = 0;
  // Created if missing; `truncate` empties it.
  virtual absl::StatusOr<std::unique_ptr<File>> OpenAppend(const std::string& path,
                                                           bool truncate) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes the names in this directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
};

// The real disk. Thread-safe; its files are not.
Disk& SystemDisk();

// Converts an errno to a status: "WHAT: text".
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_H_
