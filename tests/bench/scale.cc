// The cost of a full store and a large cluster: restart, memory, idle agents.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"
#include "tests/bench/running_watch.h"

namespace berth::bench {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Recovery {
  double first_decision_s = 0;
  double answering_s = 0;
};

// Time from exec to the first answer, and to the first decision (a job of one CPU in a separate
// queue is bound).
Recovery MeasureRestart(BenchCluster& cluster, int run) {
  cluster.KillServer();
  Recovery recovery;
  const auto begin = Clock::now();
  cluster.StartServer();
  cluster.WaitServer();
  recovery.answering_s = SecondsSince(begin);
  RunningWatch watch(cluster);
  const auto requests = MakeRequests(absl::StrCat("probe-", run), "free", 1, 1);
  (void)SendAll(cluster, requests, 1, 1);
  const auto bound = watch.WaitBound(1, std::chrono::seconds(120));
  if (!bound) Fail("no decision after the restart: " + cluster.server().LogTail());
  recovery.first_decision_s = std::chrono::duration<double>(*bound - begin).count();
  return recovery;
}

}  // namespace

std::vector<Row> Restart(const Options& options) {
  const int64_t jobs = Scaled(options, 1'000'000, 4'000), nodes = Scaled(options, 10'000, 100);
  BenchCluster cluster(options, kPatient);
  cluster.StartServer();
  cluster.WaitServer();
  RegisterNodes(cluster, nodes);
  cluster.CreateQueue("free");
  FillQueue(cluster, jobs);
  std::vector<double> decided, answering;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    const Recovery recovery = MeasureRestart(cluster, run);
    decided.push_back(recovery.first_decision_s);
    answering.push_back(recovery.answering_s);
  }
  Row row = MedianRow("restart", "s", decided);
  row.numbers["answering_s"] = MedianRow("", "", answering).value;
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.texts["agents"] = "not connected";
  return {row};
}

std::vector<Row> MemoryTasks(const Options& options) {
  const int64_t calls = Scaled(options, 22, 2);
  constexpr int kJobs = 100, kTasks = 10'000;
  BenchCluster cluster(options, absl::StrCat(kPatient, "limits: {activeTasks: 22000000}\n"));
  cluster.StartServer();
  cluster.WaitServer();
  cluster.CreateQueue("q");
  const double before = static_cast<double>(cluster.server().ResidentBytes()) / kMiB;
  auto requests = MakeRequests("t", "q", calls * kJobs, kJobs);
  for (v1::SubmitJobsRequest& request : requests) {
    for (v1::Job& job : *request.mutable_jobs()) {
      job.mutable_spec()->mutable_groups(0)->set_replicas(kTasks);
    }
  }
  (void)SendAll(cluster, requests, 1, 1);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double filled = static_cast<double>(cluster.server().ResidentBytes()) / kMiB;
  cluster.KillServer();
  cluster.StartServer();
  cluster.WaitServer();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Row row = MedianRow("memory.tasks", "MiB resident",
                      {static_cast<double>(cluster.server().ResidentBytes()) / kMiB});
  row.numbers["before"] = before;
  row.numbers["after_filling"] = filled;
  row.numbers["peak_at_restart"] = static_cast<double>(cluster.server().PeakResidentBytes()) / kMiB;
  row.numbers["jobs"] = static_cast<double>(calls * kJobs);
  row.numbers["tasks"] = static_cast<double>(calls * kJobs * kTasks);
  row.texts["when"] = "2 s after a restart";
  return {row};
}

std::vector<Row> Memory(const Options& options) {
  const int64_t jobs = Scaled(options, 1'000'000, 4'000), nodes = Scaled(options, 100'000, 1'000);
  BenchCluster cluster(options, kPatient);
  cluster.StartServer();
  cluster.WaitServer();
  RegisterNodes(cluster, nodes);
  FillQueue(cluster, jobs);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double filled = static_cast<double>(cluster.server().ResidentBytes()) / kMiB;
  cluster.CreateQueue("free");
  MeasureRestart(cluster, 0);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Row row = MedianRow("memory", "MiB resident",
                      {static_cast<double>(cluster.server().ResidentBytes()) / kMiB});
  row.numbers["after_filling"] = filled;
  row.numbers["peak_at_restart"] = static_cast<double>(cluster.server().PeakResidentBytes()) / kMiB;
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.texts["when"] = "2 s after a restart";
  row.texts["agents"] = "not connected";
  return {row};
}

std::vector<Row> Agents(const Options& options) {
  const int64_t nodes = Scaled(options, 10'000, 100);
  const auto window = std::chrono::seconds(options.quick ? 5 : 30);
  BenchCluster cluster(options, "heartbeatInterval: 5s\nlease: 15s\n");
  cluster.StartServer();
  cluster.WaitServer();
  cluster.StartNodes({.prefix = "n", .count = nodes});
  cluster.WaitNodes(nodes);
  std::this_thread::sleep_for(std::chrono::seconds(10));  // registration is over
  std::vector<double> shares;
  for (int run = 0; run < (options.quick ? 1 : 3); ++run) {
    const double cpu = cluster.server().CpuSeconds();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(window);
    shares.push_back(100 * (cluster.server().CpuSeconds() - cpu) / SecondsSince(begin));
  }
  cluster.WaitNodes(nodes);
  Row row = MedianRow("agents", "% of one core", shares);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.numbers["heartbeat_s"] = 5;
  row.numbers["resident_mib"] = static_cast<double>(cluster.server().ResidentBytes()) / kMiB;
  return {row};
}

namespace {

// CPU time of the server while gangs of 1,000 tasks run, in percent of a core.
double ShareOfRunning(const Options& options, int64_t tasks, const std::string& step_time) {
  constexpr int64_t kGang = 1000, kPerNode = 8;
  const int64_t nodes = (tasks + kPerNode - 1) / kPerNode, gang = std::min(kGang, tasks);
  BenchCluster cluster(options, "heartbeatInterval: 5s\nlease: 15s\n");
  cluster.StartServer();
  cluster.WaitServer();
  (void)cluster.StartNodes(
      {.prefix = "n", .count = nodes, .run_time = "24h", .step_time = step_time});
  cluster.WaitNodes(nodes);
  cluster.CreateQueue("bench");
  std::vector<v1::SubmitJobsRequest> requests(1);
  requests[0].set_request_id("gangs");
  for (int64_t i = 0; i < tasks / gang; ++i) {
    v1::Job& job = *requests[0].add_jobs() = MakeJob(absl::StrCat("gang-", i), "bench", /*gpus=*/1);
    job.mutable_spec()->mutable_groups(0)->set_replicas(static_cast<int32_t>(gang));
  }
  (void)SendAll(cluster, requests, 1, 1);
  std::this_thread::sleep_for(std::chrono::seconds(options.quick ? 5 : 15));  // all have started
  const double cpu = cluster.server().CpuSeconds();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(options.quick ? 5 : 30));
  return 100 * (cluster.server().CpuSeconds() - cpu) / SecondsSince(begin);
}

}  // namespace

// Agents pass on what their tasks tell once per heartbeat interval.
std::vector<Row> Progress(const Options& options) {
  const int64_t tasks = Scaled(options, 10'000, 100);
  std::vector<double> more, silent, telling;
  for (int run = 0; run < (options.quick ? 1 : 3); ++run) {
    silent.push_back(ShareOfRunning(options, tasks, ""));
    telling.push_back(ShareOfRunning(options, tasks, "1s"));
    more.push_back(std::max(telling.back() - silent.back(), 0.0));
  }
  Row row = MedianRow("progress", "% of one core", more);
  row.numbers["tasks"] = static_cast<double>(tasks);
  row.numbers["heartbeat_s"] = 5;
  row.numbers["without_steps"] = MedianRow("", "", silent).value;
  row.numbers["with_steps"] = MedianRow("", "", telling).value;
  return {row};
}

}  // namespace berth::bench
