// The speed of replays: berth-sim replay with its measurements, without reading and printing. An
// event is a submit, a start or an end of a job.
#include "offline/replay/replay.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "support/random.h"
#include "tests/bench/bench.h"

namespace berth::bench {
namespace {

struct ReplayCase {
  const char* name;
  int64_t nodes, jobs;
  double load;  // GPUs requested on average / GPUs that exist
};
constexpr int32_t kGpus = 8;

// Jobs of 1 to 16 GPUs, seconds to an hour long, that request up to three times their run time.
replay::Workload WorkloadOf(const ReplayCase& what, int64_t jobs) {
  Random random(7);
  constexpr double kMeanGpuSeconds = 4.25 * 1800;  // mean of the jobs below
  const double gap = kMeanGpuSeconds / (static_cast<double>(what.nodes * kGpus) * what.load);
  replay::Workload workload;
  double now = 0;
  for (int64_t i = 0; i < jobs; ++i) {
    now += gap * 2 * random.Unit();
    replay::TraceJob job;
    job.name = replay::NameOfRecord(i + 1);
    job.submit = absl::Seconds(now);
    job.run = absl::Seconds(1 + static_cast<int64_t>(random.Below(3600)));
    job.requested = job.run * (1 + static_cast<int64_t>(random.Below(3)));
    const auto gpus = static_cast<int32_t>(1 << random.Below(4));
    job.tasks = gpus == 8 && random.Below(4) == 0 ? 2 : 1;
    job.shape.cpu_millis = gpus * 4000;
    DeviceRequest request;
    request.kind = "gpu";
    request.count = gpus;
    job.shape.devices = {request};
    job.user = absl::StrCat("user-", random.Below(50));
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

sim::v1::Scenario ClusterOf(int64_t nodes) {
  sim::v1::Scenario cluster;
  sim::v1::Node& node = *cluster.add_nodes();
  node.set_name(absl::StrCat("n[0-", nodes - 1, "]"));
  node.set_cpu_millis(64'000);
  node.set_gpus(kGpus);
  return cluster;
}

Row Measure(const Options& options, const ReplayCase& what) {
  const int64_t nodes = Scaled(options, what.nodes, 8);
  const int64_t jobs = Scaled(options, what.jobs, 500);
  ReplayCase scaled = what;
  scaled.nodes = nodes;
  const replay::Workload workload = WorkloadOf(scaled, jobs);
  const sim::v1::Scenario cluster = ClusterOf(nodes);
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<replay::ReplayRun> run = replay::Replay(workload, cluster);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!run.ok()) Fail(run.status().ToString());
  int64_t events = 0;
  for (const replay::Outcome& outcome : run->outcomes) {
    if (outcome.end == absl::InfiniteDuration()) Fail("a job did not end");
    events += 3;
  }
  Row row;
  row.name = what.name;
  row.value = static_cast<double>(events) / seconds;
  row.unit = "events/s";
  row.numbers = {{"seconds", seconds},
                 {"jobs", static_cast<double>(jobs)},
                 {"nodes", static_cast<double>(nodes)},
                 {"cycles", static_cast<double>(run->cycles)}};
  return row;
}

}  // namespace

std::vector<Row> ReplaySmall(const Options& options) {
  return {Measure(options, {.name = "replay.small", .nodes = 16, .jobs = 50'000, .load = 0.8})};
}
std::vector<Row> ReplayLarge(const Options& options) {
  return {
      Measure(options, {.name = "replay.large", .nodes = 10'000, .jobs = 100'000, .load = 0.8})};
}

}  // namespace berth::bench
