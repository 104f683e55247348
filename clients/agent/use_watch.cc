#include "clients/agent/use_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/task_files.h"

namespace berth {

std::set<TaskId> UseWatch::Unused(absl::Duration now, const std::vector<TaskId>& tasks,
                                  const std::set<TaskId>& visited) {
  std::set<TaskId> unused;
  std::map<TaskId, Last> looked;
  for (const TaskId& id : tasks) {
    const std::string directory = absl::StrCat(tasks_directory_, "/", ToString(id));
    const Last current{now, ControlGroup(ReadSpec(directory).groups).CpuNs()};
    looked[id] = current;
    const auto before = last_.find(id);
    if (before == last_.end() || current.cpu_ns < 0 || before->second.cpu_ns < 0) continue;
    const int64_t used_ns = current.cpu_ns - before->second.cpu_ns;
    const double most_ns = absl::ToDoubleNanoseconds(now - before->second.when) * kUsedCores;
    if (static_cast<double>(used_ns) < most_ns && !visited.contains(id)) unused.insert(id);
  }
  last_ = std::move(looked);
  return unused;
}

}  // namespace berth
