// How long jobs wait for a decision and for their start.
#include "server/listeners/job_waits.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/core/testing/running.h"

namespace berth::testing {
namespace {

uint64_t TimesObserved(const Histogram& histogram) {
  uint64_t count = 0;
  for (size_t i = 0; i <= Histogram::kBuckets; ++i) count += histogram.Count(i);
  return count;
}

Event StatusEvent(JobId job, JobState state, Time time) {
  JobStatus status;
  status.state = state;
  return {time, JobStatusChanged{job, status}};
}

}  // namespace

TEST_CASE("waits of jobs: to the first placement, and from each placement until it runs") {
  TestCluster cluster;
  const JobId job = cluster.Submit("a", Gang(1));
  const Time begin = std::max(cluster.job(job).submit, cluster.job(job).start_after);
  JobWaits waits;
  const auto tell = [&](const Event& event) {
    const std::vector<Event> events = {event};
    CHECK(waits.OnTurnApplied(cluster.state(), events, {}) == nullptr);
  };
  tell({begin + absl::Seconds(4), TasksBound{.job = job, .gang = true}});
  CHECK(TimesObserved(waits.decisions()) == 1);
  CHECK(waits.decisions().SumSeconds() == 4);
  tell(StatusEvent(job, JobState::kRunning, begin + absl::Seconds(6)));
  CHECK(TimesObserved(waits.starts()) == 1);
  CHECK(waits.starts().SumSeconds() == 2);

  SECTION("other changes of a job that runs are no start") {
    tell(StatusEvent(job, JobState::kRunning, begin + absl::Seconds(7)));
    CHECK(TimesObserved(waits.starts()) == 1);
  }
  SECTION("growth is no decision about the job") {
    tell({begin + absl::Seconds(8), TasksBound{.job = job, .gang = false}});
    CHECK(TimesObserved(waits.decisions()) == 1);
  }
  SECTION("a job that ends before it runs has no start") {
    tell({begin + absl::Seconds(8), TasksBound{.job = job, .gang = true}});
    tell(StatusEvent(job, JobState::kFailed, begin + absl::Seconds(9)));
    tell(StatusEvent(job, JobState::kRunning, begin + absl::Seconds(10)));
    CHECK(TimesObserved(waits.starts()) == 1);
  }
}

TEST_CASE("histogram: buckets double from its unit") {
  Histogram histogram(absl::Milliseconds(1));
  histogram.Observe(absl::Milliseconds(1));
  histogram.Observe(absl::Milliseconds(1) + absl::Nanoseconds(1));
  histogram.Observe(absl::Hours(18));
  histogram.Observe(absl::Hours(19));
  CHECK(histogram.Count(0) == 1);
  CHECK(histogram.Count(1) == 1);
  CHECK(histogram.Count(Histogram::kBuckets - 1) == 1);
  CHECK(histogram.Count(Histogram::kBuckets) == 1);
  CHECK(histogram.Bound(1) == 0.002);
  CHECK(Histogram().Bound(0) == 1e-6);
}

}  // namespace berth::testing
