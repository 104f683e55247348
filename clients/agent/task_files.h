// The files of a task's directory, as the agent reads and writes them (supervisor/spec.h has what
// is in them).
#ifndef BERTH_CLIENTS_AGENT_TASK_FILES_H_
#define BERTH_CLIENTS_AGENT_TASK_FILES_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

// Whether somebody holds the lock of a task's directory.
bool IsLocked(const std::string& directory);

// Empty ones if there is none, or none that can be read.
SupervisorStatus ReadStatus(const std::string& directory);
SupervisorSpec ReadSpec(const std::string& directory);

// kExited, as the status tells it.
TaskEvent ExitedEvent(const SupervisorStatus& status);

// Replaced in place; links are not followed.
absl::Status WriteTextFile(const std::string& path, const std::string& text, mode_t mode);

// With all that is in it. libstdc++ 12 walks with openat and O_NOFOLLOW: a task's user cannot lead
// it out of the directory.
void RemoveTree(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_FILES_H_
