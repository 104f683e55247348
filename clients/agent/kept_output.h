// Output of ended tasks, which is kept for a while: it is bounded, and is removed first from a
// nearly full disk. All other data about a task's end stays.
#ifndef BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_
#define BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"

namespace berth {

// Whether the task of this directory has ended, according to its supervisor.
bool HasEnded(const std::string& task_directory);

// Removes output below `tasks_directory`, of the tasks that ended first, until the total is at most
// `max_bytes` and `short_of_room` returns false. Tasks in `live` keep theirs.
void TrimOutput(const std::string& tasks_directory, const std::set<std::string>& live,
                int64_t max_bytes, absl::FunctionRef<bool()> short_of_room);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_
