// Output of tasks that have ended, which is kept for a while: it has a bound, and is the first to
// go from a disk that is nearly full. All else that tells of a task's end stays.
#ifndef BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_
#define BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"

namespace berth {

// Whether the task of this directory has ended, by what its supervisor wrote.
bool HasEnded(const std::string& task_directory);

// Removes output below `tasks_directory`, that of tasks that ended first before that of others,
// until all of it is at most `max_bytes` and `short_of_room` says no. Tasks named in `live` keep
// theirs.
void TrimOutput(const std::string& tasks_directory, const std::set<std::string>& live,
                int64_t max_bytes, absl::FunctionRef<bool()> short_of_room);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_KEPT_OUTPUT_H_
