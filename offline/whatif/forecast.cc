#include "offline/whatif/forecast.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace berth {
namespace {

// Limit of cycles at one moment. It is only reached if decisions never settle.
constexpr int kMaxCyclesAtOnce = 100'000;

class Run {
 public:
  Run(SimCluster* cluster, const ForecastOptions& options)
      : cluster_(*cluster), options_(options), begin_(cluster->now()) {}
  absl::StatusOr<Forecast> Take();

 private:
  void Begin();
  absl::Status Settle();
  void Tell(const EventBody& decision);
  void SetRunEnds();
  void AdvanceTo(Time when);
  Duration RunTimeOf(const Job& job) const;

  SimCluster& cluster_;
  const ForecastOptions& options_;
  const Time begin_;
  std::set<JobId> waiting_;  // have not started since the beginning
  std::set<JobId> changed_;  // may have started or stopped running
  Forecast forecast_;
};

Duration Run::RunTimeOf(const Job& job) const {
  if (options_.predicted && job.prediction.Known()) {
    return absl::Seconds(job.prediction.expected_s);
  }
  if (job.walltime == absl::InfiniteDuration()) return options_.without_walltime;
  return options_.walltime_part == 1 ? job.walltime : job.walltime * options_.walltime_part;
}

void Run::Begin() {
  const ClusterState& state = cluster_.state();
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (Waits(job)) waiting_.insert(id);
    if (job.occupying > 0) changed_.insert(id);
  });
  const Interner& interner = state.interner();
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    const int64_t amount = state.capacity()[kind];
    if (amount > 0) forecast_.capacity[interner.KindName(kind)] = InUnits(amount, UnitOf(kind));
  }
}

void Run::Tell(const EventBody& decision) {
  if (const auto* started = std::get_if<TasksStarted>(&decision)) changed_.insert(started->job);
  if (const auto* released = std::get_if<TasksReleased>(&decision)) {
    changed_.insert(released->job);
    if (released->beneficiary != JobId{}) {
      forecast_.evictions += static_cast<int64_t>(released->tasks.size());
    }
  }
  const auto* bound = std::get_if<TasksBound>(&decision);
  if (bound == nullptr || waiting_.count(bound->job) == 0) return;
  const Job& job = cluster_.state().jobs().At(bound->job);
  const int32_t members = TallyOf(job).Members() + static_cast<int32_t>(bound->placements.size());
  if (members < job.min_available) return;
  forecast_.starts[bound->job] = cluster_.now() - begin_;
  waiting_.erase(bound->job);
}

// After a restart the run time counts from the new start.
void Run::SetRunEnds() {
  for (JobId id : std::exchange(changed_, {})) {
    const Job* job = cluster_.state().jobs().Find(id);
    if (job == nullptr || Ended(job->status.state)) continue;
    if (TallyOf(*job).In(TaskState::kRunning) == 0) {
      cluster_.RunsUntil(id, absl::InfiniteFuture());
      continue;
    }
    const Time end = job->status.start + RunTimeOf(*job);
    cluster_.RunsUntil(id, std::max(end, cluster_.now() + absl::Nanoseconds(1)));
  }
}

absl::Status Run::Settle() {
  for (int i = 0; i < kMaxCyclesAtOnce; ++i) {
    const auto plan = cluster_.Cycle([this](const EventBody& decision) { Tell(decision); });
    if (!plan.ok()) return plan.status();
    if (!cluster_.quiet()) continue;
    SetRunEnds();
    return absl::OkStatus();
  }
  return absl::InternalError("the state still changes after very many cycles");
}

void Run::AdvanceTo(Time when) {
  const ClusterState& state = cluster_.state();
  const Interner& interner = state.interner();
  const double share = absl::FDivDuration(when - cluster_.now(), options_.horizon);
  state.queues().ForEach([&](QueueId, const Queue& queue) {
    if (!queue.children.empty() || queue.allocated.IsZero()) return;
    AmountsByKind& held = forecast_.held[queue.spec.name];
    for (size_t i = 0; i < interner.kind_count(); ++i) {
      const ResourceKind kind{static_cast<uint8_t>(i)};
      if (queue.allocated[kind] == 0) continue;
      held[interner.KindName(kind)] += share * InUnits(queue.allocated[kind], UnitOf(kind));
    }
  });
  cluster_.Advance(when - cluster_.now());
}

absl::StatusOr<Forecast> Run::Take() {
  Begin();
  const Time end = begin_ + options_.horizon;
  while (true) {
    if (auto status = Settle(); !status.ok()) return status;
    const Time then = std::min(cluster_.NextDue(), end);
    AdvanceTo(then);
    if (then == end) break;
  }
  forecast_.cycles = static_cast<int64_t>(cluster_.cycles());
  return std::move(forecast_);
}

}  // namespace

bool Waits(const Job& job) {
  return !Ended(job.status.state) && TallyOf(job).Members() < std::max(job.min_available, 1);
}

absl::StatusOr<Forecast> RunForecast(SimCluster* cluster, const ForecastOptions& options) {
  return Run(cluster, options).Take();
}

}  // namespace berth
