// Which interactive tasks somebody or something uses (JobSpec.interactive): somebody is inside, or
// was since the last look, or its processes used the CPU.
//
// Not thread-safe.
#ifndef BERTH_CLIENTS_AGENT_USE_WATCH_H_
#define BERTH_CLIENTS_AGENT_USE_WATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/agent/task_id.h"

namespace berth {

inline constexpr absl::Duration kUseInterval = absl::Seconds(10);
inline constexpr double kUsedCores = 0.05;  // on average since the last look

class UseWatch {
 public:
  explicit UseWatch(std::string tasks_directory) : tasks_directory_(std::move(tasks_directory)) {}

  // Of `tasks`, those that are not used. A task whose CPU time is not known is used, as is one that
  // is seen for the first time.
  std::set<TaskId> Unused(absl::Duration now, const std::vector<TaskId>& tasks,
                          const std::set<TaskId>& visited);

 private:
  struct Last {
    absl::Duration when;
    int64_t cpu_ns = -1;
  };
  const std::string tasks_directory_;
  std::map<TaskId, Last> last_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_USE_WATCH_H_
