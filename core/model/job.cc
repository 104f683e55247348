#include "core/model/job.h"

#include <algorithm>

#include "core/base/check.h"

namespace berth {

uint32_t GroupOf(const Job& job, uint32_t task) {
  if (job.groups.size() == 1) return 0;
  const auto after =
      std::upper_bound(job.groups.begin(), job.groups.end(), task,
                       [](uint32_t index, const Group& group) { return index < group.first_task; });
  BERTH_CHECK(after != job.groups.begin());
  return static_cast<uint32_t>(after - job.groups.begin() - 1);
}

Strategy StrategyOf(const Job& job, const Group& group, Strategy of_queue) {
  for (Strategy strategy : {group.strategy, job.strategy, of_queue}) {
    if (strategy != Strategy::kDefault) return strategy;
  }
  return Strategy::kBinpack;
}

Strategy DeviceStrategyOf(const Job& job, const Group& group, Strategy of_queue,
                          Strategy of_nodes) {
  for (Strategy strategy : {group.device_strategy, job.device_strategy, of_queue}) {
    if (strategy != Strategy::kDefault) return strategy;
  }
  return of_nodes == Strategy::kSpread ? Strategy::kSpread : Strategy::kBinpack;
}

bool HasCoordinator(const Job& job) {
  return std::any_of(job.groups.begin(), job.groups.end(),
                     [](const Group& group) { return group.coordinator; });
}

bool AnyPreemptible(const Job& job) {
  return std::any_of(job.groups.begin(), job.groups.end(),
                     [&](const Group& group) { return Preemptible(job, group); });
}

int32_t PriorityOf(const Job& job, const Group& group) {
  return std::min(job.priority, group.priority.value_or(job.priority));
}

int32_t LowestPriority(const Job& job) {
  int32_t lowest = job.priority;
  for (const Group& group : job.groups) lowest = std::min(lowest, PriorityOf(job, group));
  return lowest;
}

Time PlannedEnd(const Job& job) {
  const Time from = std::max(job.status.start, job.status.bound);
  if (from == absl::InfinitePast() || IsPaused(job.status)) return absl::InfiniteFuture();
  return from + job.walltime + job.status.pause.total;
}

Duration RunTime(const JobStatus& status, Time now) {
  const Time until = IsPaused(status) ? std::min(status.pause.since, now) : now;
  return std::max(until - status.start - status.pause.total, absl::ZeroDuration());
}

Time WalltimeEnd(const Job& job) {
  if (IsPaused(job.status)) return absl::InfiniteFuture();
  return job.status.start + job.walltime + job.status.pause.total;
}

// A walltime that was made longer since asks again.
bool RunsAlone(const Job& job, uint32_t task) {
  return MembershipOf(job.groups[GroupOf(job, task)]) == GangMembership::kIndependent;
}

bool Hangs(const Job& job) {
  const Hang& hang = job.status.hang;
  return hang.time != absl::InfinitePast() && hang.task < job.tasks.size() &&
         job.tasks[hang.task].attempt == hang.attempt;
}

bool HangsWith(const Job& job, uint32_t task) {
  // What started since then replaced one of them.
  if (!Hangs(job) || job.tasks[task].start > job.status.hang.time) return false;
  const uint32_t named = job.status.hang.task;
  return RunsAlone(job, named) ? task == named : !RunsAlone(job, task);
}

Time CheckpointDue(const Job& job) {
  if (job.walltime_notice == absl::ZeroDuration()) return absl::InfiniteFuture();
  if (IsPaused(job.status)) return absl::InfiniteFuture();
  const Time start = job.status.start + job.status.pause.total;
  const Time due = std::max(start, start + job.walltime - job.walltime_notice);
  return job.status.checkpoint_asked < due ? due : absl::InfiniteFuture();
}

Time SavedAt(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  const Time of_gang = job.status.checkpoint.time;
  return RunsAlone(job, index) || of_gang < task.start ? task.saved : std::max(task.saved, of_gang);
}

GroupTally TallyOf(const Job& job) {
  GroupTally sum;
  for (const GroupTally& tally : job.tallies) {
    for (size_t state = 0; state < kTaskStates; ++state) sum.count[state] += tally.count[state];
  }
  return sum;
}

GroupTally StartersOf(const Job& job) {
  GroupTally sum;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g])) continue;
    for (size_t state = 0; state < kTaskStates; ++state) {
      sum.count[state] += job.tallies[g].count[state];
    }
  }
  return sum;
}

bool HasTopology(const Job& job) {
  if (job.topology->mode != TopologyMode::kNone) return true;
  return std::any_of(job.groups.begin(), job.groups.end(), [](const Group& group) {
    return group.topology.mode != TopologyMode::kNone ||
           group.partition_topology.mode != TopologyMode::kNone;
  });
}

}  // namespace berth
