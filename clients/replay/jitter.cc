#include "clients/replay/jitter.h"

#include <algorithm>

#include "support/random.h"

namespace berth::replay {
namespace {

using sim::v1::Distribution;
using sim::v1::PolicyResult;

void AddPart(const Distribution& one, double part, Distribution* to) {
  to->set_mean(to->mean() + one.mean() * part);
  to->set_median(to->median() + one.median() * part);
  to->set_p95(to->p95() + one.p95() * part);
  to->set_p99(to->p99() + one.p99() * part);
  to->set_max(std::max(to->max(), one.max()));
}

}  // namespace

Workload Jittered(const Workload& workload, Duration most, uint64_t seed) {
  Workload copy = workload;
  Random numbers(seed);
  const auto steps = static_cast<uint64_t>(absl::ToInt64Seconds(most)) + 1;
  for (TraceJob& job : copy.jobs) {
    job.submit += absl::Seconds(static_cast<int64_t>(numbers.Below(steps)));
  }
  SortBySubmit(&copy);
  return copy;
}

PolicyResult MeanOf(const std::vector<PolicyResult>& runs) {
  PolicyResult mean;
  mean.set_name(runs.front().name());
  const double part = 1.0 / static_cast<double>(runs.size());
  for (const PolicyResult& run : runs) {
    AddPart(run.wait(), part, mean.mutable_wait());
    AddPart(run.completion(), part, mean.mutable_completion());
    AddPart(run.bounded_slowdown(), part, mean.mutable_bounded_slowdown());
    mean.set_makespan(mean.makespan() + run.makespan() * part);
    for (const auto& [resource, used] : run.utilisation()) {
      (*mean.mutable_utilisation())[resource] += used * part;
    }
    for (const auto& [resource, lost] : run.lost()) (*mean.mutable_lost())[resource] += lost * part;
    mean.set_finished(mean.finished() + run.finished());
    mean.set_never(mean.never() + run.never());
    mean.set_evictions(mean.evictions() + run.evictions());
    mean.set_cycles(mean.cycles() + run.cycles());
  }
  return mean;
}

}  // namespace berth::replay
