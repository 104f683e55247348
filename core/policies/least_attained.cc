// least_attained: jobs with the least service so far go first, in levels. No run times need to be
// known (docs/developers/prediction.md). This is the two-dimensional least attained service of
// Tiresias (J. Gu et al., NSDI'19): service is devices times run time, there are a few levels, and
// within a level the older job goes first.
//
//   levels from 30 min, 4 h of device time:  4 devices for 10 min (40 min): second level
//                                            1 device for 20 min: first level, goes before it
//
// A stopped job returns to the first level once it has waited `promote_after` times as long as it
// has run. If it then starts, only its service since that start counts. So every job gets its turn.
#include <algorithm>

#include "core/policies/registry.h"
#include "core/policies/service.h"

namespace berth {
namespace {

// Since when a stopped job has been waiting; InfiniteFuture for other jobs. Derived from facts that
// do not change while it waits. A job that was not evicted was stopped at the end of its run;
// earlier runs of a job that failed before make that later.
Time WaitsSince(const Job& job) {
  const JobStatus& status = job.status;
  if (status.attained <= absl::ZeroDuration()) return absl::InfiniteFuture();
  if (status.evictions > 0) return std::max(status.eviction.time, status.start);
  return status.start + status.attained;
}

class Levels {
 public:
  explicit Levels(const LeastAttainedParameters& parameters) : parameters_(parameters) {}

  int64_t Of(Duration served, int64_t size) const {
    const auto& levels = parameters_.levels;
    return std::upper_bound(levels.begin(), levels.end(), served,
                            [&](Duration value, Duration level) {
                              return Thousandths(value, size) < Thousandths(level, 1000);
                            }) -
           levels.begin();
  }

  // When a job of this level with this much service reaches the next level.
  Time NextFrom(int64_t level, Duration served, int64_t size, Time now) const {
    const auto at = static_cast<size_t>(level);
    if (at >= parameters_.levels.size()) return absl::InfiniteFuture();
    const __int128 needed = Thousandths(parameters_.levels[at], 1000) - Thousandths(served, size);
    return now + absl::Milliseconds(static_cast<int64_t>(needed / size) + 1);
  }

  // When a job that has waited since then is promoted.
  Time PromotedAt(const Job& job, Time since) const {
    if (parameters_.promote_after == 0) return absl::InfiniteFuture();
    return since + parameters_.promote_after * job.status.attained;
  }

  // The part of a running job's service that counts.
  Duration Counted(const Job& job, Time now) const {
    const JobStatus& status = job.status;
    const bool promoted = status.evictions > 0 && status.attained > absl::ZeroDuration() &&
                          PromotedAt(job, status.eviction.time) <= status.bound;
    const Duration served = Served(job, now);
    return promoted ? served - status.attained : served;
  }

  int64_t OfWaiting(const Job& job, int64_t size, Time now) const {
    if (PromotedAt(job, WaitsSince(job)) <= now) return 0;
    return Of(job.status.attained, size);
  }

 private:
  static __int128 Thousandths(Duration time, int64_t size) {
    return static_cast<__int128>(absl::ToInt64Milliseconds(time)) * size;
  }

  const LeastAttainedParameters& parameters_;
};

bool Placed(const Job& job) {
  return job.status.state == JobState::kBinding || job.status.state == JobState::kRunning;
}

class LeastAttainedOrder final : public JobOrder {
 public:
  absl::string_view name() const override { return "least_attained"; }
  JobCompare Prepare(const ClusterState&, Time) const override { return nullptr; }
  std::optional<JobRank> PrepareRank(const Policies& policies,
                                     const ClusterState& state) const override {
    return [levels = Levels(policies.least_attained()), &state](const Job& job, Time now) {
      // Starts at 1: new jobs arrive with rank 0, and a class whose rank changes is re-evaluated.
      if (job.status.attained <= absl::ZeroDuration()) return int64_t{1};
      return 1 + levels.OfWaiting(job, SizeOf(state, job), now);
    };
  }
  Time RanksAgain(const Policies& policies, const Job& job, Time now) const override {
    const Time at = Levels(policies.least_attained()).PromotedAt(job, WaitsSince(job));
    return at > now ? at : absl::InfiniteFuture();
  }
  JobStanding PrepareStanding(const Policies& policies) const override {
    return [levels = Levels(policies.least_attained())](const ClusterState& state, const Job& job,
                                                        Time now) {
      const int64_t size = SizeOf(state, job);
      if (!Placed(job)) return Standing{.value = levels.OfWaiting(job, size, now)};
      const Duration counted = levels.Counted(job, now);
      const int64_t level = levels.Of(counted, size);
      return Standing{.value = level, .until = levels.NextFrom(level, counted, size, now)};
    };
  }
};

}  // namespace

std::unique_ptr<JobOrder> MakeLeastAttainedOrder() {
  return std::make_unique<LeastAttainedOrder>();
}

}  // namespace berth
