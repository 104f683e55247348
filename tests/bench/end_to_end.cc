// From submit to running: one job on an idle cluster, and ten thousand jobs at once.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"
#include "tests/bench/running_watch.h"

namespace berth::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(120);

double Quantile(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(quantile * last + 0.5)];
}

// Milliseconds of `count` jobs, one after another, each on an otherwise idle cluster.
std::vector<double> MeasureLatencies(const Options& options, int64_t count) {
  BenchCluster cluster(options);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.StartNodes({.prefix = "n", .count = 16, .run_time = "1ms"});
  cluster.WaitNodes(16);
  cluster.CreateQueue("bench");
  RunningWatch watch(cluster);
  const auto requests = MakeRequests("bench", "bench", count, 1, 1);
  std::vector<double> milliseconds;
  for (int64_t i = 0; i < count; ++i) {
    grpc::ClientContext context;
    v1::SubmitJobsResponse response;
    const auto begin = Clock::now();
    Check(cluster.jobs().SubmitJobs(&context, requests[static_cast<size_t>(i)], &response),
          "SubmitJobs");
    const auto running = watch.WaitRunning(i + 1, kTimeout);
    if (!running) Fail(absl::StrCat("job ", i, " never ran: ", cluster.server().LogTail()));
    milliseconds.push_back(std::chrono::duration<double, std::milli>(*running - begin).count());
    if (!watch.WaitEnded(i + 1, kTimeout)) Fail(absl::StrCat("job ", i, " never ended"));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return milliseconds;
}

struct Burst {
  double tasks_per_second = 0;
  double submitted_s = 0;  // the last submit was acknowledged
  double bound_s = 0;      // the last task was bound, durably
};

// `jobs` jobs of one CPU on `nodes` simulated nodes, all submitted at once.
Burst MeasureBurst(const Options& options, int64_t jobs, int64_t nodes) {
  BenchCluster cluster(options);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.StartNodes({.prefix = "n", .count = nodes});
  cluster.WaitNodes(nodes);
  cluster.CreateQueue("bench");
  RunningWatch watch(cluster);
  const auto requests = MakeRequests("bench", "bench", jobs, 1'000);
  Burst burst;
  const auto begin = Clock::now();
  burst.submitted_s = SendAll(cluster, requests, 2, 2);
  const auto bound = watch.WaitBound(jobs, kTimeout);
  const auto running = watch.WaitRunning(jobs, kTimeout);
  if (!bound || !running) Fail("not all tasks ran: " + cluster.server().LogTail());
  burst.bound_s = std::chrono::duration<double>(*bound - begin).count();
  burst.tasks_per_second =
      static_cast<double>(jobs) / std::chrono::duration<double>(*running - begin).count();
  return burst;
}

}  // namespace

std::vector<Row> Latency(const Options& options) {
  const int64_t count = Scaled(options, 500, 10);
  std::vector<double> medians, tails;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    const std::vector<double> milliseconds = MeasureLatencies(options, count);
    medians.push_back(Quantile(milliseconds, 0.5));
    tails.push_back(Quantile(milliseconds, 0.99));
  }
  Row median = MedianRow("e2e.latency", "ms", medians);
  median.numbers["quantile"] = 0.5;
  Row tail = MedianRow("e2e.latency", "ms", tails);
  tail.numbers["quantile"] = 0.99;
  for (Row* row : {&median, &tail}) row->numbers["jobs"] = static_cast<double>(count);
  return {median, tail};
}

std::vector<Row> Throughput(const Options& options) {
  const int64_t jobs = Scaled(options, 10'000, 1'000), nodes = Scaled(options, 1'000, 100);
  std::vector<double> rates, submitted, bound;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    const Burst burst = MeasureBurst(options, jobs, nodes);
    rates.push_back(burst.tasks_per_second);
    submitted.push_back(burst.submitted_s);
    bound.push_back(burst.bound_s);
  }
  Row row = MedianRow("e2e.throughput", "tasks/s", rates);
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.numbers["submitted_s"] = Quantile(submitted, 0.5);
  row.numbers["bound_s"] = Quantile(bound, 0.5);
  return {row};
}

}  // namespace berth::bench
