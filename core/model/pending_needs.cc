// What a job requests now.
//
// Example: groups a (4 replicas, at least 2) and b (3, at least 1), job minimum 4, nothing placed
// yet. The groups' minimums need a:2 b:1. The job's minimum needs one more, which goes to the first
// group that has more: a:3 b:1, as one gang. Once they are placed, a and b each request one more,
// in any order.
#include <algorithm>

#include "core/model/affinity_index.h"
#include "core/model/divisions.h"
#include "core/model/pending_index.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

bool MayPlace(const JobStatus& status) {
  if (status.suspended || status.cancelled || IsPaused(status)) return false;
  if (status.refusals.rests && status.state != JobState::kPending) return false;
  return status.state == JobState::kPending || status.state == JobState::kBinding ||
         status.state == JobState::kRunning;
}

// Members that count towards a minimum, including nominated ones.
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

// True if a group can be placed: its dependencies are met, and it is not being restarted as a
// whole, in which case it is placed together once all its tasks are gone. A rigid group of which
// some run is never completed: it restarts, at the latest by expire_gangs. Spares are for groups
// that are complete: neither before nor once some of their tasks have succeeded.
bool MayAsk(const Job& job, uint32_t group) {
  const GroupTally& tally = job.tallies[group];
  const std::optional<uint32_t> spare_of = job.groups[group].spare_of;
  if (spare_of.has_value() && job.tallies[*spare_of].Members() < job.groups[*spare_of].replicas) {
    return false;
  }
  const bool in_part =
      tally.Members() > 0 && job.status.epoch > 0 && job.groups[group].replicas > 1;
  if (in_part && MembershipOf(job.groups[group]) == GangMembership::kRigid) return false;
  const bool leaving = tally.In(TaskState::kReleasing) > 0 && tally.Members() == 0;
  return GroupOpen(job, group) && !(leaving && job.status.state != JobState::kPending);
}

using ByGroup = absl::InlinedVector<int32_t, 8>;

// Tasks that the minimums lack, and how many of them are pending.
struct Missing {
  int32_t total = 0;
  int32_t waiting = 0;
  ByGroup fixed;                           // pending ones, for the groups' own minimums
  ByGroup spare;                           // pending ones beyond these
  int32_t any = 0;                         // spare ones needed for the job's minimum
  absl::InlinedVector<uint32_t, 8> order;  // groups in the order in which they give spare ones
};

// Higher priority first.
absl::InlinedVector<uint32_t, 8> OrderOfGroups(const Job& job) {
  absl::InlinedVector<uint32_t, 8> order;
  for (uint32_t g = 0; g < job.groups.size(); ++g) order.push_back(g);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return PriorityOf(job, job.groups[a]) > PriorityOf(job, job.groups[b]);
  });
  return order;
}

Missing MissingToMinimum(const Job& job) {
  Missing missing;
  int32_t short_of_job = job.min_available;
  missing.fixed.assign(job.groups.size(), 0);
  missing.spare.assign(job.groups.size(), 0);
  int32_t spare = 0, could = 0;  // `could`: includes tasks being stopped or not requeued
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g])) continue;  // nothing waits for them
    const int32_t present = Present(job.tallies[g]);
    const int32_t lacking = std::max(0, job.groups[g].min_available - present);
    short_of_job -= present + lacking;  // a closed group's minimum comes later
    if (!MayAsk(job, g)) continue;
    missing.total += lacking;
    missing.fixed[g] = std::min(lacking, job.tallies[g].In(TaskState::kPending));
    missing.spare[g] = job.tallies[g].In(TaskState::kPending) - missing.fixed[g];
    missing.waiting += missing.fixed[g];
    spare += missing.spare[g];
    could += job.groups[g].replicas - present - lacking;
  }
  short_of_job = std::max(short_of_job, 0);
  missing.any = std::min(short_of_job, spare);
  missing.total += std::min(short_of_job, could);
  missing.waiting += missing.any;
  if (missing.any > 0) missing.order = OrderOfGroups(job);
  return missing;
}

JobNeeds GangOf(const ByGroup& counts) {
  JobNeeds needs{.gang = true, .groups = {}};
  for (uint32_t g = 0; g < counts.size(); ++g) {
    if (counts[g] > 0) needs.groups.push_back({g, counts[g]});
  }
  return needs;
}

// All ways to take `any` from the spare ones, in steps; at most one more than the limit.
class Divisions {
 public:
  Divisions(const Missing& missing, int32_t step, size_t most)
      : missing_(missing), step_(step), most_(most), counts_(missing.fixed) {
    after_.assign(missing.order.size() + 1, 0);
    for (size_t at = missing.order.size(); at-- > 0;) {
      after_[at] = after_[at + 1] + missing.spare[missing.order[at]];
    }
    From(0, missing.any);
  }
  std::vector<JobNeeds> Take() { return std::move(found_); }

 private:
  void From(size_t at, int32_t rest) {
    if (found_.size() > most_) return;
    if (rest == 0) return found_.push_back(GangOf(counts_));
    const uint32_t group = missing_.order[at];
    const int32_t least = std::max(0, rest - after_[at + 1]);
    for (int32_t here = std::min(rest, missing_.spare[group]);; here -= step_) {
      here = std::max(here, least);
      counts_[group] = missing_.fixed[group] + here;
      From(at + 1, rest - here);
      if (here == least || found_.size() > most_) break;
    }
    counts_[group] = missing_.fixed[group];
  }

  const Missing& missing_;
  const int32_t step_;
  const size_t most_;
  ByGroup counts_;
  ByGroup after_;  // spare ones from there on, in order
  std::vector<JobNeeds> found_;
};

// Takes what any group may give from the groups in order, beginning with the one at `first` and
// continuing with those before it.
JobNeeds DivisionFrom(const Missing& missing, size_t first) {
  ByGroup counts = missing.fixed;
  int32_t rest = missing.any;
  for (size_t i = 0; i < counts.size() && rest > 0; ++i) {
    const size_t g = missing.order[(first + i) % counts.size()];
    const int32_t here = std::min(rest, missing.spare[g]);
    counts[g] += here;
    rest -= here;
  }
  return GangOf(counts);
}

// Many groups with few tasks each have too many divisions for any step size: then use one division
// per starting group.
std::vector<JobNeeds> AllDivisions(const Missing& missing) {
  for (int32_t step = 1; step <= missing.any; step *= 2) {
    std::vector<JobNeeds> found = Divisions(missing, step, kMostDivisions).Take();
    if (found.size() <= kMostDivisions) return found;
  }
  std::vector<JobNeeds> found;
  const size_t groups = std::min(missing.fixed.size(), kMostDivisions);
  for (size_t first = 0; first < groups; ++first) found.push_back(DivisionFrom(missing, first));
  return found;
}

// True if there is nothing to place for the minimum: it is met, or what it lacks cannot be placed
// (an ignored failure, a restart that waits). The rest may still grow.
bool NothingToMinimum(const Job& job, const Missing& missing) {
  const bool pending = job.status.state == JobState::kPending;
  return missing.total == 0 || (!pending && missing.waiting == 0);
}

// True if members are still being stopped, or have ended and were not requeued: a gang does not
// start without them.
bool AwaitsMembers(const Job& job, const Missing& missing) {
  return job.status.state == JobState::kPending && missing.waiting < missing.total;
}

// The number of pending tasks in the first partition that has any.
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
  std::stable_sort(
      needs.groups.begin(), needs.groups.end(), [&](const GroupNeed& a, const GroupNeed& b) {
        return PriorityOf(job, job.groups[a.group]) > PriorityOf(job, job.groups[b.group]);
      });
  return needs;
}

// For ShortSince, which does not wait for failures without a reaction.
bool IsAway(const Task& task) {
  const TaskState state = TallyState(task);
  return state == TaskState::kPending || state == TaskState::kReleasing;
}
int32_t Away(const GroupTally& tally) {
  return tally.In(TaskState::kPending) + tally.In(TaskState::kReleasing);
}

// When the first of the last `lacking` members that left these groups did so.
Time LeftAt(const Job& job, uint32_t first_group, uint32_t end_group, int32_t lacking) {
  std::vector<Time> away;
  for (uint32_t g = first_group; g < end_group; ++g) {
    const Group& group = job.groups[g];
    if (!GroupBegun(job, g)) continue;
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

// Where the job fits also depends on its own tasks, once any has a place.
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

bool GroupBegun(const Job& job, uint32_t group) {
  return job.tallies[group].Members() > 0 || GroupOpen(job, group);
}

Time ShortSince(const Job& job) {
  if (job.status.state != JobState::kRunning) return absl::InfiniteFuture();
  Time since = absl::InfiniteFuture();
  int32_t lacking_to_job = job.min_available;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    const int32_t here = group.replicas - Away(job.tallies[g]);
    lacking_to_job -= GroupBegun(job, g) ? here : std::max(here, group.min_available);
    if (!GroupBegun(job, g) || here >= group.min_available) continue;
    since = std::min(since, LeftAt(job, g, g + 1, group.min_available - here));
  }
  if (lacking_to_job > 0) {
    const auto groups = static_cast<uint32_t>(job.groups.size());
    since = std::min(since, LeftAt(job, 0, groups, lacking_to_job));
  }
  return since == absl::InfiniteFuture() ? since : std::max(since, job.status.start);
}

JobNeeds NeedsOf(const Job& job) {
  if (job.series || !MayPlace(job.status)) return {};
  const Missing missing = MissingToMinimum(job);
  const bool pending = job.status.state == JobState::kPending;
  if (NothingToMinimum(job, missing)) {
    // Pending with the minimum met: either by tasks that succeeded before a restart, so that the
    // rest must run; or by members just placed, before the status changes.
    const GroupTally tally = TallyOf(job);
    return pending && tally.Members() + tally.Nominated() > 0 ? JobNeeds{} : OneMore(job);
  }
  return AwaitsMembers(job, missing) ? JobNeeds{} : DivisionFrom(missing, 0);
}

bool Divides(const Job& job) {
  if (job.groups.size() == 1) return false;
  int32_t of_groups = 0;
  for (const Group& group : job.groups) of_groups += group.min_available;
  return of_groups < job.min_available;
}

std::vector<JobNeeds> DivisionsOf(const Job& job) {
  const JobNeeds first = NeedsOf(job);
  if (!first.gang || !Divides(job)) return {first};
  const Missing missing = MissingToMinimum(job);
  return missing.any == 0 ? std::vector{first} : AllDivisions(missing);
}

std::vector<JobNeeds> FewDivisionsOf(const Job& job) {
  std::vector<JobNeeds> all = DivisionsOf(job);
  if (all.size() <= kFewDivisions) return all;
  std::vector<JobNeeds> few;
  for (size_t i = 0; i < kFewDivisions; ++i) {
    few.push_back(std::move(all[i * (all.size() - 1) / (kFewDivisions - 1)]));
  }
  return few;
}

bool Preemptible(const Job& job, const JobNeeds& needs) {
  return job.preemptible ||
         std::all_of(needs.groups.begin(), needs.groups.end(),
                     [&](const GroupNeed& need) { return job.groups[need.group].preemptible; });
}

int32_t PriorityOf(const Job& job, const JobNeeds& needs) {
  if (needs.gang || needs.groups.empty()) return job.priority;
  int32_t greatest = PriorityOf(job, job.groups[needs.groups.front().group]);
  for (const GroupNeed& need : needs.groups) {
    greatest = std::max(greatest, PriorityOf(job, job.groups[need.group]));
  }
  return greatest;
}

std::vector<JobNeeds> FirstDivisionsOf(const JobSpec& spec) {
  Job job;
  job.min_available = spec.min_available;
  job.priority = spec.priority;
  job.status.suspended = spec.suspended;
  std::vector<Group> groups;
  for (const GroupSpec& group : spec.groups) {
    Group& asks = groups.emplace_back();
    asks.replicas = group.replicas;
    asks.min_available = group.min_available;
    asks.depends_on = group.depends_on;
    asks.priority = group.priority;
    GroupTally tally;
    tally.count[static_cast<size_t>(TaskState::kPending)] = group.replicas;
    job.tallies.push_back(tally);
  }
  job.groups = groups;
  return DivisionsOf(job);
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

// If any group may give what is missing, other divisions may fit as well. The class then contains
// only this job, and room for a task of any of these groups justifies another try.
void AddOtherDivisions(const Job& job, const JobNeeds& needs, Demand* demand) {
  if (!needs.gang || !Divides(job)) return;
  const Missing missing = MissingToMinimum(job);
  if (missing.any == 0) return;
  demand->only = job.id;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (missing.spare[g] > 0) demand->items.push_back({.shape = job.groups[g].shape});
  }
}

}  // namespace

Demand DemandOf(const Queue& queue, const Job& job, const JobNeeds& needs,
                const AffinityIndex& affinity) {
  Demand demand;
  demand.queue = job.queue;
  demand.gang = needs.gang;
  if (!needs.gang) demand.surplus = SurplusOf(job);
  demand.preempts = job.preempts;
  demand.walltime = job.walltime;
  demand.expected_s = job.prediction.expected_s;
  if (queue.spec.user_fairness != UserFairness::kNone) demand.user = job.user;
  const bool refused =
      !job.status.refusals.nodes.empty() && job.status.refusals.until != absl::InfinitePast();
  if (refused || !job.status.avoided.empty()) {
    demand.only = job.id;  // it avoids some nodes
  }
  demand.affinity.assign(job.affinity.begin(), job.affinity.end());
  demand.labels = affinity.FollowedOf(job);
  const bool placed = job.occupying > 0 || TallyOf(job).Nominated() > 0;
  if (placed && !(demand.affinity.empty() && demand.labels.empty())) {
    demand.only = job.id;  // its own tasks block equal ones, but not itself
  }
  const bool topology = HasTopology(job);
  if (topology) DemandTopology(job, needs, &demand);
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    const DemandItem item{.shape = group.shape,
                          .count = need.count,
                          .partition_size = group.partition_size,
                          .strategy = StrategyOf(job, group, Strategy::kDefault),
                          .communication = topology ? group.communication : 0,
                          .preemptible = Preemptible(job, group),
                          .priority = group.priority};
    const bool apart =
        !group.near_groups.empty() || !group.apart_from.empty() || group.spread.Any();
    if (apart || item.strategy == Strategy::kColocate) demand.only = job.id;
    if (!topology && !demand.items.empty() && SameKind(demand.items.back(), item)) {
      demand.items.back().count += need.count;
    } else {
      demand.items.push_back(item);
    }
  }
  AddOtherDivisions(job, needs, &demand);
  return demand;
}

}  // namespace berth
