// What a job asks for now.
//
// Example: groups a (4 replicas, at least 2) and b (3, at least 1), job minimum 4, nothing placed
// yet. The groups' minimums ask for a:2 b:1; one is missing to the job's minimum and goes to the
// first group that has more: a:3 b:1, as one gang. Once they are placed, a and b ask for one more
// each, any of it.
#include <algorithm>

#include "core/model/pending_index.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

bool MayPlace(const JobStatus& status) {
  if (status.suspended || status.cancelled) return false;
  if (status.refusals.rests && status.state != JobState::kPending) return false;
  return status.state == JobState::kPending || status.state == JobState::kBinding ||
         status.state == JobState::kRunning;
}

// Members that count for a minimum: also those that have a place to wait for.
int32_t Present(const GroupTally& tally) {
  return tally.Members() + tally.Nominated() + tally.In(TaskState::kSucceeded);
}

bool DependencyMet(const Job& job, const GroupDependency& dependency) {
  const Group& group = job.groups[dependency.group];
  const GroupTally& tally = job.tallies[dependency.group];
  const int32_t succeeded = tally.In(TaskState::kSucceeded);
  switch (dependency.condition) {
    case GroupCondition::kRunning:
      return tally.In(TaskState::kRunning) + succeeded >= group.min_available;
    case GroupCondition::kCompleted:
      return succeeded == group.replicas;
  }
  return false;
}

// A group may be given places: its dependencies are met, and it is not being restarted as a whole,
// which places it together once the last of it is gone.
bool MayAsk(const Job& job, uint32_t group) {
  const GroupTally& tally = job.tallies[group];
  const bool leaving = tally.In(TaskState::kReleasing) > 0 && tally.Members() == 0;
  return GroupOpen(job, group) && !(leaving && job.status.state != JobState::kPending);
}

// Tasks missing to the minimums, and how many of them wait to be placed.
struct Missing {
  int32_t total = 0;
  int32_t waiting = 0;
  JobNeeds needs;
};

Missing MissingToMinimum(const Job& job) {
  Missing missing;
  int32_t short_of_job = job.min_available;
  absl::InlinedVector<int32_t, 8> asked(job.groups.size(), 0);
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const int32_t present = Present(job.tallies[g]);
    const int32_t lacking = std::max(0, job.groups[g].min_available - present);
    short_of_job -= present + lacking;  // a closed group's minimum comes later
    if (lacking == 0 || !MayAsk(job, g)) continue;
    missing.total += lacking;
    asked[g] = std::min(lacking, job.tallies[g].In(TaskState::kPending));
  }
  for (uint32_t g = 0; g < job.groups.size() && short_of_job > 0; ++g) {
    const int32_t more = std::min(short_of_job, job.tallies[g].In(TaskState::kPending) - asked[g]);
    if (more <= 0 || !MayAsk(job, g)) continue;
    missing.total += more;
    asked[g] += more;
    short_of_job -= more;
  }
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (asked[g] > 0) missing.needs.groups.push_back({g, asked[g]});
    missing.waiting += asked[g];
  }
  missing.needs.gang = true;
  return missing;
}

// Tasks that wait in the first partition in which any do.
int32_t WaitingInPartition(const Job& job, const Group& group) {
  const auto size = static_cast<uint32_t>(group.partition_size);
  const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
  int32_t waiting = 0;
  for (uint32_t begin = group.first_task; begin < end && waiting == 0; begin += size) {
    for (uint32_t task = begin; task < begin + size; ++task) {
      waiting += job.tasks[task].state == TaskState::kPending ? 1 : 0;
    }
  }
  return waiting;
}

// One task, or one whole partition, of any group.
JobNeeds OneMore(const Job& job) {
  JobNeeds needs;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].In(TaskState::kPending) == 0 || !MayAsk(job, g)) continue;
    const Group& group = job.groups[g];
    needs.groups.push_back({g, group.partition_size > 1 ? WaitingInPartition(job, group) : 1});
  }
  return needs;
}

// For ShortSince: failures that nobody answers are not waited for.
bool IsAway(const Task& task) {
  const TaskState state = TallyState(task);
  return state == TaskState::kPending || state == TaskState::kReleasing;
}
int32_t Away(const GroupTally& tally) {
  return tally.In(TaskState::kPending) + tally.In(TaskState::kReleasing);
}
bool Begun(const Job& job, uint32_t group) {
  return job.tallies[group].Members() > 0 || GroupOpen(job, group);
}

// When the first of the last `lacking` members that left these groups did so.
Time LeftAt(const Job& job, uint32_t first_group, uint32_t end_group, int32_t lacking) {
  std::vector<Time> away;
  for (uint32_t g = first_group; g < end_group; ++g) {
    const Group& group = job.groups[g];
    if (!Begun(job, g)) continue;
    for (uint32_t i = 0; i < static_cast<uint32_t>(group.replicas); ++i) {
      const Task& task = job.tasks[group.first_task + i];
      if (IsAway(task)) away.push_back(task.since);
    }
  }
  if (away.empty()) return absl::InfiniteFuture();
  std::sort(away.begin(), away.end());
  return away[away.size() - std::min(away.size(), static_cast<size_t>(lacking))];
}

bool SameKind(const DemandItem& a, DemandItem b) {
  b.count = a.count;
  return a == b;
}

// Where it fits depends also on where its own tasks are, once any has a place.
void DemandTopology(const Job& job, const JobNeeds& needs, Demand* demand) {
  demand->topology.push_back(*job.topology);
  for (const GroupNeed& need : needs.groups) {
    demand->topology.push_back(job.groups[need.group].topology);
    demand->topology.push_back(job.groups[need.group].partition_topology);
  }
  if (job.occupying > 0 || TallyOf(job).Nominated() > 0) demand->only = job.id;
}

}  // namespace

bool GroupOpen(const Job& job, uint32_t group) {
  for (const GroupDependency& dependency : job.groups[group].depends_on) {
    if (!DependencyMet(job, dependency)) return false;
  }
  return true;
}

Time ShortSince(const Job& job) {
  if (job.status.state != JobState::kRunning) return absl::InfiniteFuture();
  Time since = absl::InfiniteFuture();
  int32_t lacking_to_job = job.min_available;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    const int32_t here = group.replicas - Away(job.tallies[g]);
    lacking_to_job -= Begun(job, g) ? here : std::max(here, group.min_available);
    if (!Begun(job, g) || here >= group.min_available) continue;
    since = std::min(since, LeftAt(job, g, g + 1, group.min_available - here));
  }
  if (lacking_to_job > 0) {
    const auto groups = static_cast<uint32_t>(job.groups.size());
    since = std::min(since, LeftAt(job, 0, groups, lacking_to_job));
  }
  return since == absl::InfiniteFuture() ? since : std::max(since, job.status.start);
}

JobNeeds NeedsOf(const Job& job) {
  if (!MayPlace(job.status)) return {};
  Missing missing = MissingToMinimum(job);
  const bool pending = job.status.state == JobState::kPending;
  // Nothing to ask for the minimum: it is met, or what it lacks is not to be placed (a failure that
  // is ignored, a restart that waits). The rest may still grow.
  if (missing.total == 0 || (!pending && missing.waiting == 0)) {
    // Pending with the minimum met: by what succeeded before a restart, and the rest is to run; or
    // by members just placed, and the status follows.
    const GroupTally tally = TallyOf(job);
    return pending && tally.Members() + tally.Nominated() > 0 ? JobNeeds{} : OneMore(job);
  }
  // Some members are still being stopped, or ended and were not requeued: a gang does not start
  // without them.
  if (pending && missing.waiting < missing.total) return {};
  return std::move(missing.needs);
}

JobNeeds FirstNeedsOf(const JobSpec& spec) {
  Job job;
  job.min_available = spec.min_available;
  job.status.suspended = spec.suspended;
  std::vector<Group> groups;
  for (const GroupSpec& group : spec.groups) {
    Group& asks = groups.emplace_back();
    asks.replicas = group.replicas;
    asks.min_available = group.min_available;
    asks.depends_on = group.depends_on;
    GroupTally tally;
    tally.count[static_cast<size_t>(TaskState::kPending)] = group.replicas;
    job.tallies.push_back(tally);
  }
  job.groups = groups;
  return NeedsOf(job);
}

namespace {

int32_t SurplusOf(const Job& job) {
  int32_t surplus = 0;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const GroupTally& tally = job.tallies[g];
    const int32_t present = tally.Members() + tally.In(TaskState::kSucceeded);
    surplus += std::max(present - job.groups[g].min_available, 0);
  }
  return surplus;
}

}  // namespace

Demand DemandOf(const Queue& queue, const Job& job, const JobNeeds& needs) {
  Demand demand;
  demand.queue = job.queue;
  demand.gang = needs.gang;
  demand.preemptible = job.preemptible;
  if (!needs.gang) demand.surplus = SurplusOf(job);
  demand.walltime = job.walltime;
  demand.expected_s = job.prediction.expected_s;
  if (queue.spec.user_fairness != UserFairness::kNone) demand.user = job.user;
  if (!job.status.refusals.nodes.empty() && job.status.refusals.until != absl::InfinitePast()) {
    demand.only = job.id;  // some nodes are left out for it
  }
  const bool topology = HasTopology(job);
  if (topology) DemandTopology(job, needs, &demand);
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    const DemandItem item{.shape = group.shape,
                          .count = need.count,
                          .partition_size = group.partition_size,
                          .strategy = StrategyOf(job, group, Strategy::kDefault),
                          .communication = topology ? group.communication : 0};
    const bool apart = !group.near_groups.empty() || !group.apart_from.empty();
    if (apart || item.strategy == Strategy::kColocate) demand.only = job.id;
    if (!topology && !demand.items.empty() && SameKind(demand.items.back(), item)) {
      demand.items.back().count += need.count;
    } else {
      demand.items.push_back(item);
    }
  }
  return demand;
}

}  // namespace berth
