// Replays of random workloads: invariants of every schedule, and short list schedulers whose
// schedule the engine must match if it is configured to work like them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "offline/replay/replay.h"
#include "offline/replay/replay_result.h"
#include "offline/sim/scenario_file.h"
#include "support/random.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::replay {
namespace {

sim::v1::Scenario Cluster(const std::string& text) {
  const auto documents = ReadScenarios(text, "cluster.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  return documents->front().scenario;
}

ReplayRun Must(const Workload& workload, const sim::v1::Scenario& cluster,
               const ReplayOptions& options) {
  absl::StatusOr<ReplayRun> run = Replay(workload, cluster, options);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  return *std::move(run);
}

int64_t Between(Random* random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random->Below(static_cast<uint64_t>(most - least + 1)));
}

TraceJob CpuJob(Random* random, int64_t submit, int64_t most_cores) {
  TraceJob job;
  job.submit = absl::Seconds(submit);
  job.run = absl::Seconds(Between(random, 1, 300));
  job.requested = job.run + absl::Seconds(Between(random, 0, 300));
  job.shape.cpu_millis = 1000 * Between(random, 1, most_cores);
  job.queue = "all";
  return job;
}

// In order of arrival: each job as soon as it fits, and never before the one ahead of it.
std::vector<Duration> ListSchedule(const std::vector<TraceJob>& jobs, int64_t cpu_millis) {
  std::vector<Duration> starts;
  Duration now;
  for (const TraceJob& job : jobs) {
    now = std::max(now, job.submit);
    const auto in_use = [&] {
      int64_t sum = 0;
      for (size_t i = 0; i < starts.size(); ++i) {
        if (starts[i] + jobs[i].run > now) sum += jobs[i].shape.cpu_millis;
      }
      return sum;
    };
    while (in_use() + job.shape.cpu_millis > cpu_millis) {
      Duration next = absl::InfiniteDuration();  // the next end
      for (size_t i = 0; i < starts.size(); ++i) {
        const Duration end = starts[i] + jobs[i].run;
        if (end > now) next = std::min(next, end);
      }
      now = next;
    }
    starts.push_back(now);
  }
  return starts;
}

TEST_CASE("strict order equals a list scheduler") {
  const sim::v1::Scenario cluster = Cluster(
      "nodes: [{name: n, cpu: 16}]\n"
      "queues: [{name: all, order: FifoStrict}]\n"
      "config: {actions: [allocate]}\n");
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Workload workload;
    for (int64_t i = 0, now = 0; i < 60; ++i) {
      now += Between(&random, 0, 60);
      workload.jobs.push_back(CpuJob(&random, now, 16));
    }
    const ReplayRun run = Must(workload, cluster, {});
    const std::vector<Duration> expected = ListSchedule(workload.jobs, 16'000);
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO("job " << i);
      REQUIRE(run.outcomes[i].first_start == expected[i]);
      REQUIRE(run.outcomes[i].end == expected[i] + workload.jobs[i].run);
    }
  }
}

// EASY backfilling as published (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001), on one machine. At
// every arrival and every end, the first jobs in line start while they fit. Then any job that fits
// starts, if it ends before the first blocked job can start, or leaves that job its place.
// Candidates are tried by age or by requested time, the shortest first (EASY-SJBF: Tsafrir, Etsion
// and Feitelson, IEEE TPDS 18(6), 2007).
class Easy {
 public:
  Easy(const std::vector<TraceJob>& jobs, int64_t cpu_millis, bool shortest_around = false)
      : jobs_(jobs),
        free_(cpu_millis),
        shortest_around_(shortest_around),
        starts_(jobs.size(), absl::InfiniteDuration()) {}

  std::vector<Duration> Take() {
    size_t next = 0;
    while (next < jobs_.size() || !running_.empty()) {
      Duration now = absl::InfiniteDuration();
      if (next < jobs_.size()) now = jobs_[next].submit;
      for (const size_t i : running_) now = std::min(now, EndOf(i));
      std::vector<size_t> left;
      for (const size_t i : running_) {
        if (EndOf(i) > now) {
          left.push_back(i);
        } else {
          free_ += SizeOf(i);
        }
      }
      running_ = left;
      for (; next < jobs_.size() && jobs_[next].submit == now; ++next) queue_.push_back(next);
      Serve(now);
    }
    return starts_;
  }

 private:
  int64_t SizeOf(size_t i) const { return jobs_[i].shape.cpu_millis; }
  Duration EndOf(size_t i) const { return starts_[i] + jobs_[i].run; }
  Duration PlannedEndOf(size_t i) const { return starts_[i] + jobs_[i].requested; }
  void Start(size_t i, Duration now) {
    starts_[i] = now;
    free_ -= SizeOf(i);
    running_.push_back(i);
  }

  void Serve(Duration now) {
    while (!queue_.empty() && SizeOf(queue_.front()) <= free_) {
      Start(queue_.front(), now);
      queue_.erase(queue_.begin());
    }
    if (queue_.empty()) return;
    std::vector<size_t> by_end = running_;
    std::sort(by_end.begin(), by_end.end(),
              [&](size_t a, size_t b) { return PlannedEndOf(a) < PlannedEndOf(b); });
    const size_t first = queue_.front();
    int64_t then_free = free_;
    Duration shadow = absl::InfiniteDuration();
    for (const size_t i : by_end) {
      if (then_free >= SizeOf(first) && PlannedEndOf(i) > shadow) break;
      then_free += SizeOf(i);
      shadow = PlannedEndOf(i);
    }
    int64_t extra = then_free - SizeOf(first);
    std::vector<size_t> others(queue_.begin() + 1, queue_.end());
    if (shortest_around_) {
      std::stable_sort(others.begin(), others.end(),
                       [&](size_t a, size_t b) { return jobs_[a].requested < jobs_[b].requested; });
    }
    for (const size_t i : others) {
      const bool ends_before = now + jobs_[i].requested <= shadow;
      if (SizeOf(i) > free_ || !(ends_before || SizeOf(i) <= extra)) continue;
      if (!ends_before) extra -= SizeOf(i);
      Start(i, now);
      queue_.erase(std::find(queue_.begin(), queue_.end(), i));
    }
  }

  const std::vector<TraceJob>& jobs_;
  int64_t free_;
  const bool shortest_around_;
  std::vector<Duration> starts_;
  std::vector<size_t> running_, queue_;
};

// Returns how often a job started before an earlier one.
int CompareWithEasy(uint64_t seed, const sim::v1::Scenario& cluster, bool shortest_around) {
  Random random(seed);
  Workload workload;
  for (int64_t i = 0, now = 0; i < 80; ++i) {
    now += Between(&random, 1, 70);
    workload.jobs.push_back(CpuJob(&random, now, 16));
    workload.jobs.back().name = NameOfRecord(i + 1);
  }
  const ReplayRun run = Must(workload, cluster, {});
  const std::vector<Duration> expected = Easy(workload.jobs, 16'000, shortest_around).Take();
  int around = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("job " << i + 1);
    REQUIRE(run.outcomes[i].first_start == expected[i]);
    if (i > 0 && expected[i] < expected[i - 1]) ++around;
  }
  return around;
}

void CompareWithEasy(const std::string& order, bool shortest_around) {
  const sim::v1::Scenario cluster = Cluster(
      "nodes: [{name: n, cpu: 16}]\n"
      "config: {actions: [allocate, backfill], backfill: {refresh: 0s, order: " +
      order + "}}\n");
  int around = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    around += CompareWithEasy(seed, cluster, shortest_around);
  }
  CHECK(around > 50);  // otherwise the comparison proves little
}

TEST_CASE("reservations equal EASY backfilling as published") { CompareWithEasy("Service", false); }

TEST_CASE("backfilling the shortest job first equals EASY-SJBF as published") {
  CompareWithEasy("ShortestFirst", true);
}

Workload RandomGangs(Random* random) {
  Workload workload;
  for (int64_t i = 0, now = 0; i < 80; ++i) {
    now += Between(random, 0, 90);
    TraceJob job = CpuJob(random, now, 4);
    job.name = NameOfRecord(i + 1);
    job.tasks = static_cast<int32_t>(Between(random, 1, 4));
    job.shape.devices = {{.kind = "gpu", .count = static_cast<int32_t>(Between(random, 1, 4))}};
    job.queue = Between(random, 0, 1) == 0 ? "a" : "b";
    job.user = absl::StrCat("u", Between(random, 0, 3));
    // Jobs that are not preemptible may not get more than their queue deserves.
    job.preemptible = Between(random, 0, 2) > 0 || GpusOf(job) > 6;
    job.priority = static_cast<int32_t>(Between(random, 0, 2));
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

// No GPU has two jobs at the same time.
void CheckOverlap(const Record& record) {
  std::map<std::pair<size_t, size_t>, std::vector<std::pair<double, double>>> by_gpu;
  for (const DeviceUseSpan& span : record.spans) {
    by_gpu[{span.node, span.device}].emplace_back(span.start, span.end);
  }
  for (auto& [gpu, spans] : by_gpu) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) REQUIRE(spans[i - 1].second <= spans[i].first);
  }
}

// Every job ran for its run time, on its number of GPUs. All other GPU time was counted as lost.
void CheckJobs(const Workload& workload, const ReplayRun& run) {
  std::vector<double> gpu_seconds(workload.jobs.size());
  for (const DeviceUseSpan& span : run.record.spans) {
    gpu_seconds[span.job] += span.end - span.start;
  }
  double in_vain = 0, all = 0;
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    INFO("job " << i);
    const TraceJob& job = workload.jobs[i];
    const Outcome& outcome = run.outcomes[i];
    REQUIRE(outcome.first_start >= job.submit);
    REQUIRE(outcome.end >= outcome.first_start + job.run);
    REQUIRE(outcome.end < absl::InfiniteDuration());
    const double useful = GpusOf(job) * absl::ToDoubleSeconds(job.run);
    const bool stopped = outcome.preemptions > 0 || outcome.failures > 0;
    if (!stopped) REQUIRE(outcome.end == outcome.first_start + job.run);
    REQUIRE(gpu_seconds[i] >= Approx(useful));
    in_vain += gpu_seconds[i] - useful;
    all += gpu_seconds[i];
  }
  const auto gpu = static_cast<size_t>(
      std::find(run.resources.begin(), run.resources.end(), "gpu") - run.resources.begin());
  const double lost = run.total.lost.amount[gpu] + run.total.lost_to_failures.amount[gpu];
  CHECK(lost / kWhole == Approx(in_vain).margin(1e-6));
  CHECK(run.total.share.held.amount[gpu] / kWhole == Approx(all));
}

// The sums over queues and over users equal the total.
void CheckSums(const ReplayRun& run) {
  const std::vector<OwnerSum>* const sets[] = {&run.queues, &run.users};
  for (const std::vector<OwnerSum>* set : sets) {
    Amounts held, lost;
    size_t jobs = 0;
    for (const OwnerSum& owner : *set) {
      held.Add(owner.share.held);
      lost.Add(owner.lost);
      jobs += owner.jobs.size();
    }
    CHECK(jobs == run.outcomes.size());
    for (size_t kind = 0; kind < run.resources.size(); ++kind) {
      CHECK(held.amount[kind] == Approx(run.total.share.held.amount[kind]));
      CHECK(lost.amount[kind] == Approx(run.total.lost.amount[kind]));
    }
  }
}

TEST_CASE("of every replay: no overlap, no job lost, and sums that agree") {
  const sim::v1::Scenario cluster = Cluster(
      "nodes: [{name: 'n[0-3]', cpu: 16, gpus: 4}]\n"
      "queues: [{name: a, deserved: {gpu: 10}}, {name: b, deserved: {gpu: 6}}]\n");
  int64_t preemptions = 0, failures = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Workload workload = RandomGangs(&random);
    ReplayOptions options{.record = true};
    for (int64_t time = 500; time < 4000; time += Between(&random, 700, 1500)) {
      options.outages.push_back({.node = absl::StrCat("n", Between(&random, 0, 3)),
                                 .down = absl::Seconds(time),
                                 .up = absl::Seconds(time + Between(&random, 1, 600))});
    }
    const ReplayRun run = Must(workload, cluster, options);
    CheckOverlap(run.record);
    CheckJobs(workload, run);
    CheckSums(run);
    for (const Moment& moment : run.record.moments) REQUIRE(moment.held <= 1);
    for (const NodeMoment& moment : run.record.node_moments) REQUIRE(moment.held <= 1);
    for (const std::optional<double> index : {run.queue_fairness, run.user_fairness}) {
      if (index.has_value()) CHECK((*index > 0.2 && *index <= 1));
    }
    for (const Outcome& outcome : run.outcomes) {
      preemptions += outcome.preemptions;
      failures += outcome.failures;
    }
    // The figures are the same with and without a record.
    options.record = false;
    const ReplayRun again = Must(workload, cluster, options);
    CHECK(Figures(workload, again, "p").DebugString() == Figures(workload, run, "p").DebugString());
  }
  CHECK(preemptions > 0);  // otherwise the checks above prove little
  CHECK(failures > 0);
}

}  // namespace
}  // namespace berth::replay
