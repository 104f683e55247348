#include "core/model/waiting.h"

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/model/pending_index.h"

namespace berth {
namespace {

int32_t WaitingIn(const GroupTally& tally) {
  return tally.Waiting() + tally.In(TaskState::kBound) + tally.In(TaskState::kPrepared) +
         tally.In(TaskState::kStarting);
}

bool WaitsAtAll(const Job& job, uint32_t group) {
  const JobState state = job.status.state;
  const bool active =
      state == JobState::kPending || state == JobState::kBinding || state == JobState::kRunning;
  return active && !job.status.suspended && WaitingIn(job.tallies[group]) > 0 &&
         GroupOpen(job, group);
}

// When the dependency, which is met, was met.
Time MetSince(const Job& job, const GroupDependency& dependency) {
  const Group& group = job.groups[dependency.group];
  const bool ended = dependency.condition == GroupCondition::kCompleted;
  std::vector<Time> times;
  for (uint32_t i = group.first_task; i < group.first_task + static_cast<uint32_t>(group.replicas);
       ++i) {
    const Task& task = job.tasks[i];
    const bool counts = task.state == TaskState::kSucceeded || task.state == TaskState::kRunning;
    if (counts) times.push_back(ended ? task.since : task.start);
  }
  std::sort(times.begin(), times.end());
  const size_t needed = static_cast<size_t>(ended ? group.replicas : group.min_available);
  if (needed == 0 || times.size() < needed) return absl::InfinitePast();
  return times[needed - 1];
}

// No wait of the group's tasks began before.
Time EarliestWait(const Job& job, uint32_t group) {
  const JobStatus& status = job.status;
  Time earliest =
      std::max({job.submit, job.start_after, status.hold_until, status.bound, status.incident});
  for (const GroupDependency& dependency : job.groups[group].depends_on) {
    earliest = std::max(earliest, MetSince(job, dependency));
  }
  return earliest;
}

const LifecyclePolicy* FirstOn(absl::Span<const LifecyclePolicy> policies, PolicyEvent event) {
  const auto found =
      std::find_if(policies.begin(), policies.end(),
                   [event](const LifecyclePolicy& policy) { return policy.event == event; });
  return found == policies.end() ? nullptr : &*found;
}

// Calls visit(wait, the earliest that any of the group can have) until it returns false.
void ForEachWait(const Job& job, uint32_t group,
                 absl::FunctionRef<bool(const Wait& wait, Time earliest)> visit) {
  if (!WaitsAtAll(job, group)) return;
  const Time earliest = EarliestWait(job, group);
  const uint32_t first = job.groups[group].first_task;
  int32_t left = WaitingIn(job.tallies[group]);
  for (uint32_t i = first; left > 0; ++i) {
    const Task& task = job.tasks[i];
    if (!AwaitsStart(task)) continue;
    --left;
    if (!visit({.task = i, .since = std::max(task.since, earliest)}, earliest)) return;
  }
}

}  // namespace

bool AwaitsStart(const Task& task) {
  return Waits(task.state) || task.state == TaskState::kBound ||
         task.state == TaskState::kPrepared || task.state == TaskState::kStarting;
}

const LifecyclePolicy* PolicyOn(const Job& job, const Group& group, PolicyEvent event) {
  const LifecyclePolicy* own = FirstOn(group.policies, event);
  return own != nullptr ? own : FirstOn(job.policies, event);
}

std::optional<Wait> LongestWait(const Job& job, uint32_t group) {
  std::optional<Wait> longest;
  ForEachWait(job, group, [&](const Wait& wait, Time earliest) {
    if (!longest.has_value() || wait.since < longest->since) longest = wait;
    return wait.since > earliest;
  });
  return longest;
}

Time NextWaitDue(const Job& job, uint32_t group, Duration wait, Time after) {
  Time first = absl::InfiniteFuture();
  ForEachWait(job, group, [&](const Wait& one, Time earliest) {
    const Time due = one.since + wait;
    if (due <= after) return true;
    first = std::min(first, due);
    return one.since > earliest;
  });
  return first;
}

}  // namespace berth
