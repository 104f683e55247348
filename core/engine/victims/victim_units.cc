#include "core/engine/victims/victim_units.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

using Tasks = absl::InlinedVector<uint32_t, 1>;

// It says that it writes checkpoints.
bool Promises(const Job& job) {
  return job.checkpoint_interval != absl::InfiniteDuration() &&
         absl::ToInt64Seconds(job.checkpoint_interval) > 0;
}

bool RunsBefore(const Task& task, Time now) {
  return task.start != absl::InfinitePast() && task.start < now;
}

// Those of [first, end) that hold a place.
Tasks Holding(const Job& job, uint32_t first, uint32_t end) {
  Tasks tasks;
  for (uint32_t i = first; i < end; ++i) {
    if (Holds(job.tasks[i])) tasks.push_back(i);
  }
  return tasks;
}

// Groups of lower priority first, then later groups.
absl::InlinedVector<uint32_t, 8> FirstToGive(const Job& job) {
  absl::InlinedVector<uint32_t, 8> groups;
  for (auto g = static_cast<uint32_t>(job.groups.size()); g-- > 0;) groups.push_back(g);
  std::stable_sort(groups.begin(), groups.end(), [&](uint32_t a, uint32_t b) {
    return PriorityOf(job, job.groups[a]) < PriorityOf(job, job.groups[b]);
  });
  return groups;
}

// What it gives back is already somebody's.
bool AnyBeingFrozen(const Job& job) {
  return IsPaused(job.status) && std::any_of(job.tasks.begin(), job.tasks.end(), BeingFrozen);
}

bool SurplusFirst(const VictimUnit& a, const VictimUnit& b) {
  if (a.rest != b.rest) return b.rest;
  return a.loss < b.loss;
}

}  // namespace

// How many members each begun group, and the job, have beyond their minimum.
struct UnitMaker::Spare {
  explicit Spare(const Job& job) : of_job(-job.min_available) {
    for (uint32_t g = 0; g < job.groups.size(); ++g) {
      const GroupTally& tally = job.tallies[g];
      const int32_t here = tally.Members() + tally.In(TaskState::kSucceeded);
      const int32_t minimum = job.groups[g].min_available;
      const bool begun = tally.Members() > 0 || GroupOpen(job, g);
      of_group.push_back(begun ? here - minimum : 0);
      of_job += begun ? here : std::max(here, minimum);
    }
  }
  bool Has(uint32_t group, int32_t tasks) const {
    return of_group[group] >= tasks && of_job >= tasks;
  }
  void Take(uint32_t group, int32_t tasks) {
    of_group[group] -= tasks;
    of_job -= tasks;
  }
  absl::InlinedVector<int32_t, 4> of_group;
  int32_t of_job;
};

int64_t SecondsLost(const Job& job, uint32_t index, Time now) {
  const Task& task = job.tasks[index];
  if (!RunsBefore(task, now)) return 0;
  if (const Time saved = SavedAt(job, index); saved != absl::InfinitePast()) {
    return std::max<int64_t>(0, absl::ToInt64Seconds(now - saved));
  }
  const int64_t ran = absl::ToInt64Seconds(now - task.start);
  return Promises(job) ? ran % absl::ToInt64Seconds(job.checkpoint_interval) : ran;
}

Resources RequestOf(const ClusterState& state, const VictimUnit& unit) {
  const Job& job = state.jobs().At(unit.job);
  Resources sum;
  for (uint32_t task : unit.tasks) {
    sum += state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources;
  }
  return sum;
}

Time SavesSoon(const Job& job, const VictimUnit& unit, Time now, Duration patience) {
  Time saved = absl::InfinitePast();
  for (uint32_t task : unit.tasks) saved = std::max(saved, SavedAt(job, task));
  if (!Promises(job) || saved == absl::InfinitePast()) return absl::InfinitePast();
  const Time next = saved + job.checkpoint_interval + job.checkpoint_interval / 10;
  const Duration wait = next - now;
  const bool soon = wait > absl::ZeroDuration() && wait <= patience;
  return soon && wait < now - saved ? next : Time(absl::InfinitePast());
}

bool HoldsClaims(const ClusterState& state, const VictimUnit& unit) {
  const Job& job = state.jobs().At(unit.job);
  return std::any_of(unit.tasks.begin(), unit.tasks.end(),
                     [&](uint32_t task) { return job.tasks[task].claimed; });
}

Resources ClaimedOf(const ClusterState& state, const VictimUnit& unit) {
  const Job& job = state.jobs().At(unit.job);
  Resources sum;
  for (uint32_t task : unit.tasks) {
    if (!job.tasks[task].claimed) continue;
    sum += state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources;
  }
  return sum;
}

int32_t GreatestPriority(const Job& job, const std::vector<uint32_t>& tasks) {
  int32_t greatest = LowestPriority(job);
  for (uint32_t task : tasks) {
    greatest = std::max(greatest, PriorityOf(job, job.groups[GroupOf(job, task)]));
  }
  return greatest;
}

bool UnitMaker::Protected(Time until) {
  if (until <= now_) return false;
  protected_until_ = std::min(protected_until_, until);
  return true;
}

bool SurplusOnlyAbove(const ClusterState& state, QueueId queue) {
  for (QueueId id = queue;; id = state.queues().At(id).spec.parent) {
    if (state.queues().At(id).spec.surplus_only) return true;
    if (id == kRootQueue) return false;
  }
}

bool MayGo(const Job& job) {
  const JobStatus& status = job.status;
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  const bool stops = status.suspended && !status.pause.wanted;
  if (!placed || stops || status.cancelled || AnyBeingFrozen(job)) return false;
  if (!AnyPreemptible(job)) return false;
  const GroupTally tally = TallyOf(job);
  return tally.Members() > 0 && tally.Nominated() == 0 && tally.In(TaskState::kReleasing) == 0 &&
         tally.In(TaskState::kLost) == 0;
}

// A moment later it is a task like any other.
bool UnitMaker::JustBound(const Task& task) {
  constexpr Duration kMoment = absl::Milliseconds(1);
  return task.state == TaskState::kBound && task.since >= now_ && Protected(now_ + kMoment);
}

// What those that report checkpoints would lose now, each since its latest; the upper one of an
// even number.
std::optional<int64_t> UnitMaker::MedianOfReporters() const {
  std::vector<int64_t> lost;
  state_.queues().ForEach([&](QueueId, const Queue& queue) {
    for (const OrderKey& key : queue.occupying_jobs) {
      const JobStatus& status = state_.jobs().At(key.job).status;
      const bool reported =
          status.checkpoint.time != absl::InfinitePast() && status.checkpoint.time >= status.start;
      if (status.state != JobState::kRunning || !reported) continue;
      lost.push_back(absl::ToInt64Seconds(std::max(now_ - status.checkpoint.time, Duration())));
    }
  });
  if (lost.empty()) return std::nullopt;
  const auto middle = lost.begin() + static_cast<std::ptrdiff_t>(lost.size() / 2);
  std::nth_element(lost.begin(), middle, lost.end());
  return *middle;
}

// Not more than it has run.
int64_t UnitMaker::Charge(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  const bool only_promises = Promises(job) && SavedAt(job, index) == absl::InfinitePast();
  if (!only_promises || !RunsBefore(task, now_)) return SecondsLost(job, index, now_);
  if (!median_.has_value()) median_ = MedianOfReporters();
  if (!median_->has_value()) return SecondsLost(job, index, now_);
  return std::min(**median_, absl::ToInt64Seconds(now_ - task.start));
}

VictimUnit UnitMaker::UnitOf(const Job& job, bool rest, Tasks tasks) {
  VictimUnit unit{.job = job.id,
                  .rest = rest,
                  .must_move = false,
                  .frozen = false,
                  .priority = job.priority,
                  .loss = 0,
                  .tasks = {}};
  unit.tasks = std::move(tasks);
  unit.frozen = std::all_of(unit.tasks.begin(), unit.tasks.end(), [&](uint32_t index) {
    return job.tasks[index].pause == PauseState::kPaused;
  });
  if (!rest) unit.priority = PriorityOf(job, job.groups[GroupOf(job, unit.tasks.front())]);
  for (uint32_t index : unit.tasks) {
    const Group& group = job.groups[GroupOf(job, index)];
    const ShapeEntry& shape = state_.interner().Shape(group.shape);
    unit.loss += (shape.device_count * kWhole + shape.share) * Charge(job, index);
  }
  return unit;
}

// A surplus task with its own protection goes only with the rest.
void UnitMaker::AddSurplus(const Job& job, std::vector<VictimUnit>* units) {
  const bool some_claimed = std::any_of(job.tasks.begin(), job.tasks.end(),
                                        [](const Task& task) { return task.claimed; });
  Spare spare(job);
  AddSurplus(job, /*claimed=*/false, spare, units);
  if (some_claimed) AddSurplus(job, /*claimed=*/true, spare, units);
}

void UnitMaker::AddSurplus(const Job& job, bool claimed, Spare& spare,
                           std::vector<VictimUnit>* units) {
  const auto settled = [&](uint32_t index) {
    const Task& task = job.tasks[index];
    if (JustBound(task)) return false;
    const Time placed = task.state == TaskState::kRunning ? task.start : task.since;
    return task.attempt <= 1 || !Protected(placed + parameters_.cooldown);
  };
  for (uint32_t g : FirstToGive(job)) {
    const Group& group = job.groups[g];
    if (!Preemptible(job, group)) continue;
    const auto size = static_cast<uint32_t>(std::max(group.partition_size, 1));
    const auto replicas = static_cast<uint32_t>(group.replicas);
    for (uint32_t first = replicas / size * size; first >= size && spare.Has(g, 1);) {
      first -= size;
      const uint32_t begin = group.first_task + first;
      Tasks tasks = Holding(job, begin, begin + size);
      const auto count = static_cast<int32_t>(tasks.size());
      if (count == 0 || !spare.Has(g, count)) continue;
      if (!std::all_of(tasks.begin(), tasks.end(), settled)) continue;
      VictimUnit unit = UnitOf(job, /*rest=*/false, std::move(tasks));
      if (HoldsClaims(state_, unit) != claimed) continue;
      spare.Take(g, count);
      units->push_back(std::move(unit));
    }
  }
}

void UnitMaker::AddUnitsOf(const Job& job, std::vector<VictimUnit>* units) {
  if (!MayGo(job)) return;
  const JobStatus& status = job.status;
  // A job that is still starting has not begun to run.
  const Time began = status.state == JobState::kRunning ? status.start : now_;
  if (Protected(began + parameters_.min_runtime)) return;
  const size_t before = units->size();
  AddSurplus(job, units);
  if (!job.preemptible || SurplusOnlyAbove(state_, job.queue)) return;
  if (status.starts > 1 && Protected(status.bound + parameters_.cooldown)) return;
  std::vector<bool> surplus(job.tasks.size(), false);
  for (size_t u = before; u < units->size(); ++u) {
    for (uint32_t task : (*units)[u].tasks) surplus[task] = true;
  }
  Tasks rest;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (surplus[i] || !Holds(job.tasks[i])) continue;
    if (JustBound(job.tasks[i])) return;
    rest.push_back(i);
  }
  if (!rest.empty()) units->push_back(UnitOf(job, /*rest=*/true, std::move(rest)));
}

const VictimUnit* UnitList::Next(const ClusterState& state, size_t* at) {
  for (*at = std::max(*at, first_); *at < units_.size();) {
    const VictimUnit& unit = units_[*at];
    const bool front = *at == first_;
    ++*at;
    if (MayGo(state.jobs().At(unit.job))) return &unit;
    if (front) first_ = *at;
  }
  return nullptr;
}

UnitPool::UnitPool(Cycle& cycle)
    : cycle_(cycle),
      state_(cycle.state()),
      maker_(cycle.state(), cycle.policies().eviction(), cycle.now()) {}

UnitPool::Band* UnitPool::Find(QueueId queue, size_t band) {
  OfQueue& of = queues_[queue];
  while (of.bands.size() <= band) {
    if (!Extend(queue, &of)) return nullptr;
  }
  return of.bands[band].get();
}

// Units that go before their job does.
void UnitPool::ListGraded(QueueId queue, OfQueue* of) {
  of->graded.emplace();
  const auto& jobs = state_.queues().At(queue).graded_jobs;
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    cycle_.CountWork(1);
    const Job& job = state_.jobs().At(it->job);
    std::vector<VictimUnit> units;
    maker_.AddUnitsOf(job, &units);
    for (VictimUnit& unit : units) {
      if (unit.priority < it->priority) {
        (*of->graded)[unit.priority].units.push_back(std::move(unit));
      }
    }
    const Time until = maker_.TakeProtectedUntil();  // of some of it; of the lowest, when known
    if (until == absl::InfiniteFuture()) continue;
    Time& known = (*of->graded)[LowestPriority(job)].protected_until;
    known = std::min(known, until);
  }
}

// Adds the band of the lowest priority above the last; false if there is none.
bool UnitPool::Extend(QueueId queue, OfQueue* of) {
  if (!of->graded.has_value()) ListGraded(queue, of);
  const auto& jobs = state_.queues().At(queue).occupying_jobs;
  const auto it = of->looked_from.has_value() ? jobs.lower_bound(*of->looked_from) : jobs.end();
  if (it == jobs.begin() && of->graded->empty()) return false;
  const int64_t of_jobs =
      it == jobs.begin() ? std::numeric_limits<int64_t>::max() : std::prev(it)->priority;
  std::vector<VictimUnit> units;
  Time protected_until = absl::InfiniteFuture();
  int64_t priority = of_jobs;
  if (!of->graded->empty() && of->graded->begin()->first <= of_jobs) {
    priority = of->graded->begin()->first;
    units = std::move(of->graded->begin()->second.units);
    protected_until = of->graded->begin()->second.protected_until;
    of->graded->erase(of->graded->begin());
  }
  if (of_jobs == priority) {
    const OrderKey before_all{.priority = static_cast<int32_t>(priority),
                              .deadline = absl::InfinitePast()};
    const auto end = of->looked_from;
    of->looked_from = *jobs.lower_bound(before_all);
    const auto& giving = state_.queues().At(queue).giving_jobs;
    auto give = end.has_value() ? giving.lower_bound(*end) : giving.end();
    // Backwards: later deadline first, then younger; a stable sort keeps that among equals.
    while (give != giving.begin() && std::prev(give)->priority == priority) {
      --give;
      cycle_.CountWork(1);
      maker_.AddUnitsOf(state_.jobs().At(give->job), &units);
    }
  }
  const auto before = [&](const VictimUnit& unit) { return unit.priority < priority; };
  units.erase(std::remove_if(units.begin(), units.end(), before), units.end());
  std::stable_sort(units.begin(), units.end(), SurplusFirst);
  of->bands.push_back(
      std::make_unique<Band>(Band{priority, UnitList(std::move(units)),
                                  std::min(protected_until, maker_.TakeProtectedUntil())}));
  return true;
}

std::optional<VictimUnit> QueueVictims::Next() {
  while (true) {
    const VictimUnit* unit = band_ == nullptr ? nullptr : band_->units.Next(state_, &next_);
    if (unit != nullptr && unit->job == besides_) continue;
    if (unit != nullptr && useful_ != nullptr && !useful_(state_.jobs().At(unit->job))) continue;
    if (unit != nullptr) return *unit;
    UnitPool::Band* band = pool_.Find(queue_, bands_);
    if (band == nullptr || band->priority >= bound_) return std::nullopt;
    band_ = band;
    next_ = 0;
    ++bands_;
    protected_until_ = std::min(protected_until_, band->protected_until);
  }
}

}  // namespace berth
