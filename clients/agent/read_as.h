// Reads a file with the rights of another user.
#ifndef BERTH_CLIENTS_AGENT_READ_AS_H_
#define BERTH_CLIENTS_AGENT_READ_AS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/task_users.h"

namespace berth {

// In a process of its own that has become the user; as the agent itself if it is not root. A
// regular file, of at most `most` bytes. FAILED_PRECONDITION, without any of its contents: it
// cannot be read, or is larger.
absl::StatusOr<std::string> ReadFileAs(const TaskUser& user, const std::string& path, size_t most);

// The same for the value of a variable (EnvVar.from_file): at most kMaxFileValue bytes, without
// NUL, and without a newline at its end.
absl::StatusOr<std::string> ReadValueAs(const TaskUser& user, const std::string& path);
// The launch with values of files in place of their paths. The job is to blame for errors.
absl::StatusOr<v1::TaskLaunch> WithFileValues(const TaskUser& user, const v1::TaskLaunch& launch);
inline constexpr size_t kMaxFileValue = size_t{32} << 10;

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_READ_AS_H_
