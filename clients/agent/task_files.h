// Reads and writes the files of a task's directory (their contents: supervisor/spec.h).
#ifndef BERTH_CLIENTS_AGENT_TASK_FILES_H_
#define BERTH_CLIENTS_AGENT_TASK_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

// Whether a process holds the lock of a task's directory.
bool IsLocked(const std::string& directory);

// Empty if the file is missing or cannot be read.
SupervisorStatus ReadStatus(const std::string& directory);
SupervisorSpec ReadSpec(const std::string& directory);

// The kExited event for the status.
TaskEvent ExitedEvent(const SupervisorStatus& status);

// Overwrites in place; links are not followed.
absl::Status WriteTextFile(const std::string& path, const std::string& text, mode_t mode);

// Removes the directory recursively. libstdc++ 12 walks with openat and O_NOFOLLOW: a task's user
// cannot redirect it.
void RemoveTree(const std::string& path);

// Of STATE/lease: nanoseconds on the steady clock; 0: none, or of another form.
int64_t ReadLeaseFile(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_FILES_H_
