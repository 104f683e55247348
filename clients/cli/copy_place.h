// Places of berth cp: "JOB:/path", "JOB/TASK:path", or a local path.
#ifndef BERTH_CLIENTS_CLI_COPY_PLACE_H_
#define BERTH_CLIENTS_CLI_COPY_PLACE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace berth {

// In a task. A relative path begins in the task's working directory.
struct CopyPlace {
  std::string job;
  std::string task;       // empty: rank 0
  std::string path;       // as written
  std::string directory;  // that holds it
  std::string leaf;       // its name there; empty for "/", "." and ".."
};

// Nothing for a local path: it has no colon, or begins with '.' or '/'. INVALID_ARGUMENT without a
// job or a path.
absl::StatusOr<std::optional<CopyPlace>> ParseCopyPlace(const std::string& text);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COPY_PLACE_H_
