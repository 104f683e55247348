#include "offline/whatif/whatif_command.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "offline/replay/replay_result.h"
#include "offline/sim/reload.h"

namespace berth {
namespace {

// Copies the state of the snapshot into a separate cluster.
absl::Status Copy(const Snapshot& snapshot, SimCluster* cluster) {
  ClusterState copy;
  if (auto status = LoadInOrder(snapshot.state, &copy); !status.ok()) return status;
  cluster->Adopt(std::move(copy));
  return absl::OkStatus();
}

struct Side {
  Forecast forecast;
  std::vector<std::string> changes;
};

absl::StatusOr<Side> RunSide(const Snapshot& snapshot, const Changes& changes,
                             const ForecastOptions& options) {
  absl::StatusOr<Policies> policies = Policies::Create(snapshot.policies);
  if (!policies.ok()) return policies.status();
  SimCluster cluster(*std::move(policies), snapshot.time, SimOptions{});
  if (auto status = Copy(snapshot, &cluster); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> applied = ApplyChanges(changes, &cluster);
  if (!applied.ok()) return applied.status();
  absl::StatusOr<Forecast> forecast = RunForecast(&cluster, options);
  if (!forecast.ok()) return forecast.status();
  return Side{.forecast = *std::move(forecast), .changes = *std::move(applied)};
}

sim::v1::WhatifSide MessageOf(const Forecast& forecast) {
  sim::v1::WhatifSide side;
  side.set_started(static_cast<int64_t>(forecast.starts.size()));
  side.set_evictions(forecast.evictions);
  side.set_cycles(forecast.cycles);
  AmountsByKind held;
  for (const auto& [queue, amounts] : forecast.held) {
    for (const auto& [kind, amount] : amounts) held[kind] += amount;
  }
  for (const auto& [kind, amount] : forecast.capacity) {
    (*side.mutable_utilisation())[kind] = held[kind] / amount;
  }
  return side;
}

// The waiting times of a side: of all jobs, and of the jobs of each queue.
class WaitsOfSide {
 public:
  WaitsOfSide(const Forecast& forecast, const ForecastOptions& options)
      : forecast_(forecast), horizon_(absl::ToDoubleSeconds(options.horizon)) {}

  void Add(JobId job, const std::string& queue) {
    const auto found = forecast_.starts.find(job);
    const double wait =
        found == forecast_.starts.end() ? horizon_ : absl::ToDoubleSeconds(found->second);
    all_.push_back(wait);
    by_queue_[queue].push_back(wait);
  }
  sim::v1::Distribution All() const { return replay::DistributionOf(all_); }
  sim::v1::Distribution Of(const std::string& queue) const {
    const auto found = by_queue_.find(queue);
    return found == by_queue_.end() ? sim::v1::Distribution()
                                    : replay::DistributionOf(found->second);
  }

 private:
  const Forecast& forecast_;
  const double horizon_;
  std::vector<double> all_;
  std::map<std::string, std::vector<double>> by_queue_;
};

double DominantShare(const AmountsByKind& held, const AmountsByKind& capacity) {
  double share = 0;
  for (const auto& [kind, amount] : held) {
    const auto whole = capacity.find(kind);
    if (whole != capacity.end()) share = std::max(share, amount / whole->second);
  }
  return share;
}

std::optional<double> StartOf(const Forecast& forecast, JobId job) {
  const auto found = forecast.starts.find(job);
  if (found == forecast.starts.end()) return std::nullopt;
  return absl::ToDoubleSeconds(found->second);
}

// Adds each job to the result, and counts the jobs of each queue.
void AddJobs(const ClusterState& state, const ForecastOptions& options, const Forecast& before,
             const Forecast* after, std::map<std::string, sim::v1::WhatifQueue>* queues,
             sim::v1::WhatifResult* result) {
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (Ended(job.status.state)) return;
    const bool waits = Waits(job);
    if (job.occupying > 0) result->set_running(result->running() + 1);
    const bool predicted = options.predicted && job.prediction.Known();
    const bool assumed = job.walltime == absl::InfiniteDuration() && !predicted;
    if ((waits || job.occupying > 0) && assumed) {
      result->set_without_walltime(result->without_walltime() + 1);
    }
    if (!waits) return;
    result->set_waiting(result->waiting() + 1);
    sim::v1::WhatifJob& added = *result->add_jobs();
    added.set_name(job.name);
    added.set_queue(state.queues().At(job.queue).spec.name);
    sim::v1::WhatifQueue& queue = (*queues)[added.queue()];
    queue.set_waiting(queue.waiting() + 1);
    if (const auto start = StartOf(before, id); start.has_value()) {
      added.set_start_before(*start);
      queue.set_started_before(queue.started_before() + 1);
    }
    if (after == nullptr) return;
    if (const auto start = StartOf(*after, id); start.has_value()) {
      added.set_start_after(*start);
      queue.set_started_after(queue.started_after() + 1);
    }
  });
}

void AddHeld(const Forecast& forecast, bool after,
             std::map<std::string, sim::v1::WhatifQueue>* queues) {
  for (const auto& [name, amounts] : forecast.held) {
    sim::v1::WhatifQueue& queue = (*queues)[name];
    auto* held = after ? queue.mutable_after() : queue.mutable_before();
    for (const auto& [kind, amount] : amounts) (*held)[kind] = amount;
    const double share = DominantShare(amounts, forecast.capacity);
    after ? queue.set_share_after(share) : queue.set_share_before(share);
  }
}

void AddWaits(const ClusterState& state, const ForecastOptions& options, const Forecast& forecast,
              bool after, std::map<std::string, sim::v1::WhatifQueue>* queues,
              sim::v1::WhatifSide* side) {
  WaitsOfSide waits(forecast, options);
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (Waits(job)) waits.Add(id, state.queues().At(job.queue).spec.name);
  });
  *side->mutable_wait() = waits.All();
  for (auto& [name, queue] : *queues) {
    *(after ? queue.mutable_wait_after() : queue.mutable_wait_before()) = waits.Of(name);
  }
}

}  // namespace

absl::StatusOr<sim::v1::WhatifResult> Whatif(const Snapshot& snapshot, const Changes& changes,
                                             const ForecastOptions& options) {
  const absl::StatusOr<Side> before = RunSide(snapshot, Changes{}, options);
  if (!before.ok()) return before.status();
  std::optional<Side> after;
  if (changes.Any()) {
    absl::StatusOr<Side> run = RunSide(snapshot, changes, options);
    if (!run.ok()) return run.status();
    after = *std::move(run);
  }
  sim::v1::WhatifResult result;
  result.set_revision(snapshot.revision);
  result.mutable_time()->set_seconds(absl::ToUnixSeconds(snapshot.time));
  result.set_horizon(absl::ToDoubleSeconds(options.horizon));
  *result.mutable_before() = MessageOf(before->forecast);
  std::map<std::string, sim::v1::WhatifQueue> queues;
  AddJobs(snapshot.state, options, before->forecast, after.has_value() ? &after->forecast : nullptr,
          &queues, &result);
  AddHeld(before->forecast, false, &queues);
  AddWaits(snapshot.state, options, before->forecast, false, &queues, result.mutable_before());
  if (after.has_value()) {
    *result.mutable_after() = MessageOf(after->forecast);
    AddHeld(after->forecast, true, &queues);
    AddWaits(snapshot.state, options, after->forecast, true, &queues, result.mutable_after());
    for (const std::string& change : after->changes) result.add_changes(change);
  }
  for (auto& [name, queue] : queues) {
    queue.set_name(name);
    *result.add_queues() = std::move(queue);
  }
  return result;
}

}  // namespace berth
