// Replays of workloads by job orders, compared with plain implementations of their objectives.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "offline/replay/replay.h"
#include "offline/sim/scenario_file.h"
#include "support/random.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::replay {
namespace {

constexpr int64_t kCores = 64;

struct Case {
  ReplayOptions options;
  sim::v1::Scenario cluster;
};

Case Configured(const std::string& config) {
  const auto documents = ReadScenarios(
      absl::StrCat("nodes: [{name: n, cpu: ", kCores, "}]\nconfig: {", config, "}\n"), "c.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  Case made;
  made.cluster = documents->front().scenario;
  return made;
}

ReplayRun Must(const Workload& workload, const Case& how) {
  absl::StatusOr<ReplayRun> run = Replay(workload, how.cluster, how.options);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  return *std::move(run);
}

int64_t Between(Random* random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random->Below(static_cast<uint64_t>(most - least + 1)));
}

// Run times between half a minute and more than a day. Each doubling halves their number.
Workload HeavyTailed(uint64_t seed, int count, bool walltimes) {
  Random random(seed);
  Workload workload;
  for (int64_t i = 0, now = 0; i < count; ++i) {
    now += Between(&random, 0, 90);
    TraceJob job;
    job.name = NameOfRecord(i + 1);
    job.submit = absl::Seconds(now);
    int64_t run = 30;
    while (run < 100'000 && Between(&random, 0, 1) == 0) run *= 2;
    job.run = absl::Seconds(run + Between(&random, 0, run));
    if (walltimes) job.requested = job.run;
    job.shape.cpu_millis = 1000 * (int64_t{1} << Between(&random, 0, 5));
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

double MeanCompletion(const Workload& workload, const std::vector<Duration>& ends) {
  double sum = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    sum += absl::ToDoubleSeconds(ends[i] - workload.jobs[i].submit);
  }
  return sum / static_cast<double>(ends.size());
}

double MeanCompletion(const Workload& workload, const ReplayRun& run) {
  std::vector<Duration> ends;
  for (const Outcome& outcome : run.outcomes) {
    REQUIRE(outcome.end < absl::InfiniteDuration());
    ends.push_back(outcome.end);
  }
  return MeanCompletion(workload, ends);
}

// Shortest remaining service first, with all run times known and free preemption. At every arrival
// and every end all jobs are placed again, in the order of remaining run time x cores, if they fit.
std::vector<Duration> ShortestRemainingService(const Workload& workload) {
  const std::vector<TraceJob>& jobs = workload.jobs;
  std::vector<Duration> left, ends(jobs.size());
  for (const TraceJob& job : jobs) left.push_back(job.run);
  std::vector<size_t> here, running;
  Duration now;
  for (size_t next = 0; next < jobs.size() || !here.empty();) {
    Duration then = next < jobs.size() ? jobs[next].submit : absl::InfiniteDuration();
    for (const size_t i : running) then = std::min(then, now + left[i]);
    for (const size_t i : running) left[i] -= then - now;
    now = then;
    for (const size_t i : running) {
      if (left[i] <= absl::ZeroDuration()) ends[i] = now;
    }
    std::erase_if(here, [&](size_t i) { return left[i] <= absl::ZeroDuration(); });
    for (; next < jobs.size() && jobs[next].submit <= now; ++next) here.push_back(next);
    std::sort(here.begin(), here.end(), [&](size_t a, size_t b) {
      return left[a] * jobs[a].shape.cpu_millis < left[b] * jobs[b].shape.cpu_millis;
    });
    running.clear();
    int64_t free = kCores * 1000;
    for (const size_t i : here) {
      if (jobs[i].shape.cpu_millis > free) continue;
      free -= jobs[i].shape.cpu_millis;
      running.push_back(i);
    }
  }
  return ends;
}

// A job that may take the resources of others needs no reservation.
constexpr const char* kRotating = "actions: [allocate, rotate], jobOrders: [";

// 1.09 to 1.30 times the oracle for these four seeds.
TEST_CASE("smallest area with rotation is near shortest remaining service if run times are known") {
  double all_found = 0, all_oracle = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const Workload workload = HeavyTailed(seed, 1500, /*walltimes=*/true);
    Case how = Configured(absl::StrCat(kRotating, "smallest_area]"));
    how.options.jobs.preemptible = true;
    how.options.jobs.checkpoint_interval = absl::Minutes(1);
    const double found = MeanCompletion(workload, Must(workload, how));
    const double oracle = MeanCompletion(workload, ShortestRemainingService(workload));
    INFO("found " << found << ", oracle " << oracle);
    all_found += found;
    all_oracle += oracle;
    CHECK(found < 1.35 * oracle);
    CHECK(oracle < MeanCompletion(workload, Must(workload, Configured(""))));
  }
  CHECK(all_found < 1.3 * all_oracle);
}

// The gain depends on the number of pending jobs: 1.5 to 20 times for these four seeds.
TEST_CASE("least attained with rotation halves the mean completion if run times are unknown") {
  double all_before = 0, all_found = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    const Workload workload = HeavyTailed(seed, 1500, /*walltimes=*/false);
    const double before = MeanCompletion(workload, Must(workload, Configured("")));
    Case how = Configured(absl::StrCat(kRotating, "least_attained]"));
    how.options.jobs.preemptible = true;
    how.options.jobs.checkpoint_interval = absl::Minutes(1);
    const ReplayRun run = Must(workload, how);
    const double found = MeanCompletion(workload, run);
    INFO("found " << found << ", by default " << before);
    CHECK(found < before);
    all_before += before;
    all_found += found;
    int32_t most = 0;
    for (const Outcome& outcome : run.outcomes) most = std::max(most, outcome.preemptions);
    CHECK(most > 0);
  }
  CHECK(2 * all_found < all_before);
}

// A machine that is never full, and one job that needs all of it. One in ten of the small jobs runs
// for its whole walltime, and the others for a minute, so that predictions are often wrong.
TEST_CASE("with predictions a job of the whole machine waits for two walltimes at most") {
  constexpr Duration kWalltime = absl::Hours(10);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Workload workload;
    size_t whole = 0;
    for (int64_t i = 0, now = 0; now < 30 * 86'400; ++i) {
      now += Between(&random, 0, 900);
      TraceJob job;
      job.submit = absl::Seconds(now);
      job.user = "ann";
      job.run = Between(&random, 0, 9) == 0 ? kWalltime : absl::Minutes(1);
      job.requested = kWalltime;
      job.shape.cpu_millis = 1000;
      if (i == 400) {
        whole = workload.jobs.size();
        job.user = "bob";
        job.run = job.requested = absl::Hours(1);
        job.shape.cpu_millis = kCores * 1000;
      }
      workload.jobs.push_back(std::move(job));
    }
    const Case how = Configured(
        "actions: [allocate, backfill], prediction: {enabled: true}, backfill: {fit: Predicted}");
    const ReplayRun run = Must(workload, how);
    const Duration start = run.outcomes[whole].first_start;
    const Duration submit = workload.jobs[whole].submit;
    CHECK(start <= submit + 2 * kWalltime);
    int overtook = 0;
    for (size_t i = whole + 1; i < workload.jobs.size(); ++i) {
      const bool around = run.outcomes[i].first_start < start;
      if (around) ++overtook;
    }
    INFO(overtook << " younger jobs started before it");
    CHECK(overtook > 10);  // otherwise the check above proves little
  }
}

}  // namespace
}  // namespace berth::replay
