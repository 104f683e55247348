// A file tree of untrusted origin: measures it and removes device files. Links are not followed.
// These functions change the working directory while they run, so that no path is too long for
// them: use them in single-threaded processes only.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_FILE_TREE_H_
#define BERTH_CLIENTS_AGENT_IMAGES_FILE_TREE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace berth {

struct TreeSize {
  int64_t bytes = 0;  // on disk; a file with several names counts once
  int64_t files = 0;  // names of files, directories and links
};

// INTERNAL: this could not be done, because of errno.
absl::Status ErrnoError(const std::string& what);

// Files that appear or vanish during the walk may or may not be counted.
TreeSize MeasureTree(const std::string& path);

// Removes device files: an image must not decide which devices a task can open.
absl::Status RemoveDeviceFiles(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_FILE_TREE_H_
