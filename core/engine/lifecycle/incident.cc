// Failures of the job's own that belong together. When one member of a gang dies, the others
// usually fail within seconds, because they cannot reach it. That is one incident: it uses one
// retry and waits for one back-off, and its message names the task that failed first.
//
//   00:00  worker-3 is killed (exit 137)      incident, retry 1, the gang restarts
//   00:01  worker-0 exits with 1              part of it
//   00:09  worker-3 runs again and fails      the next incident: this attempt began after the first
//
// A node that dies, or a device, is often noticed only after tasks that talked to it have failed.
// If that shows while the job still stops its tasks, within a minute, the incident was not the
// job's own: it gets its retry back.
#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/task_message.h"

namespace berth {
namespace {

constexpr Duration kFailureWindow = absl::Seconds(10);
constexpr Duration kAttribution = absl::Minutes(1);

// "64Mi"
std::string MemoryText(int64_t bytes) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  for (; unit + 1 < std::size(kUnits) && bytes > 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return absl::StrCat(bytes, kUnits[unit]);
}

// Ended in failure during the incident with which the job's restart began.
bool Followed(const Look& look, const Task& task) {
  const Time incident = look.job.status.incident;
  return task.end_cause == EndCause::kExit && ExitCode(task) != 0 && task.start <= incident &&
         task.since >= incident && !Occupies(task.state);
}

// It was a member when the incident began, and its node was lost since, or its device failed.
bool AtFault(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (UnhealthyDevice(look, index) != nullptr) return true;
  if (task.since < look.job.status.incident) return false;
  if (task.end_cause == EndCause::kDevice) return true;
  // A task that may be replaced at once is gone already.
  const bool stopped = Waits(task.state) && task.end_cause == EndCause::kStopped;
  if (task.state != TaskState::kLost && !stopped) return false;
  const Node* node = look.state.nodes().Find(task.node);
  return node != nullptr && node->status.state != NodeState::kReady;
}

std::string HowAtFault(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  const bool device =
      task.end_cause == EndCause::kDevice || UnhealthyDevice(look, index) != nullptr;
  if (device) return HowItsDeviceFails(look, index);
  return absl::StrCat(TaskLabel(look.job, index), " was lost", OnNode(look, index));
}

}  // namespace

int32_t ExitCode(const Task& task) {
  return task.exit_signal != 0 ? 128 + task.exit_signal : task.exit_code;
}

std::string HowItFailed(const Look& look, uint32_t index) {
  const Job& job = look.job;
  const std::string label = TaskLabel(job, index);
  const std::string where = OnNode(look, index);
  const int32_t code = ExitCode(job.tasks[index]);
  const std::string text(look.state.TaskMessage({job.id, index}));
  if (!absl::StrContains(text, kOutOfMemory)) {
    const char* separator = text.empty() ? "" : ": ";
    return absl::StrCat(label, " exited with ", code, where, separator, text);
  }
  const TaskShape& shape = look.state.interner().Shape(job.groups[GroupOf(job, index)].shape).shape;
  const std::string asked = shape.memory_bytes == 0
                                ? ""
                                : absl::StrCat(": it requested ", MemoryText(shape.memory_bytes));
  return absl::StrCat(label, " ran out of memory", where, asked, " (exit ", code, ")");
}

bool InIncident(const Look& look, const Task& task) {
  const Time incident = look.job.status.incident;
  return incident != absl::InfinitePast() && task.start <= incident &&
         task.since <= incident + kFailureWindow;
}

bool FailedBefore(const Task& a, const Task& b) {
  const bool a_follows = ExitCode(a) == 1, b_follows = ExitCode(b) == 1;
  return a_follows != b_follows ? b_follows : a.since < b.since;
}

Step GiveBackRetry(const Look& look) {
  const Time incident = look.job.status.incident;
  if (incident == absl::InfinitePast() || look.now > incident + kAttribution) return {};
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    if (!AtFault(look, i)) continue;
    return {WithStatus(look, [&](JobStatus& status) {
      status.retries = std::max(status.retries - 1, 0);
      status.incident = status.hold_until = absl::InfinitePast();
      status.rung = 0;
      absl::StrAppend(&status.message, "; ", HowAtFault(look, i));
    })};
  }
  return {};
}

std::string WholeIncident(const Look& look) {
  if (look.job.status.incident == absl::InfinitePast() || Hangs(look.job)) return "";
  const TaskList failed =
      TasksWhere(look.job, [&](const Task& task) { return Followed(look, task); });
  if (failed.empty()) return "";
  const uint32_t first = *std::min_element(
      failed.begin(), failed.end(),
      [&](uint32_t a, uint32_t b) { return FailedBefore(look.job.tasks[a], look.job.tasks[b]); });
  const size_t others = failed.size() - 1;
  if (others == 0) return HowItFailed(look, first);
  return absl::StrCat(HowItFailed(look, first), "; ", others, others == 1 ? " other" : " others",
                      " followed");
}

}  // namespace berth
