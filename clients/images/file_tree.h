// A tree of files that somebody else made: its size, and without what has no place in an image.
// Links are not followed. These change the working directory while they run, so that no name is too
// long for them: for processes with one thread.
#ifndef BERTH_CLIENTS_IMAGES_FILE_TREE_H_
#define BERTH_CLIENTS_IMAGES_FILE_TREE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace berth {

struct TreeSize {
  int64_t bytes = 0;  // on disk; a file with several names counts once
  int64_t files = 0;  // names of files, directories and links
};

// Of what is there; what comes or goes meanwhile counts or not.
TreeSize MeasureTree(const std::string& path);

// Removes device files: what a task may open is not for an image to say.
absl::Status RemoveDeviceFiles(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_IMAGES_FILE_TREE_H_
