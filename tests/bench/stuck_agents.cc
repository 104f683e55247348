// Frozen agents with open connections: what do they cost the others? Their process is stopped
// (SIGSTOP), and then gets Prepares that it does not read.
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "clients/agent/simulation.h"
#include "support/yaml_proto.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(120);
constexpr int kTasksPerStuckNode = 16;

using TaskKey = std::pair<uint64_t, uint32_t>;  // job, attempt; jobs of one task
struct KeyHash {
  size_t operator()(const TaskKey& key) const { return key.first * 31 + key.second; }
};
using Times = std::unordered_map<TaskKey, absl::Time, KeyHash>;

// When the server bound a task, by its own clock, which is this machine's.
class PlacedWatch {
 public:
  explicit PlacedWatch(BenchCluster& cluster) : reader_(cluster.watch().Watch(&context_, {})) {
    v1::WatchResponse initial;
    if (!reader_->Read(&initial)) Check(reader_->Finish(), "Watch");
    thread_ = std::thread([this] { Read(); });
  }
  ~PlacedWatch() {
    context_.TryCancel();
    thread_.join();
  }
  Times times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  void Read() {
    v1::WatchResponse response;
    while (reader_->Read(&response)) {
      const std::lock_guard lock(mutex_);
      for (const v1::ChangeEvent& event : response.events()) {
        if (event.type() != v1::ChangeEvent::TASK_CHANGED || event.task_state() != v1::TASK_BOUND ||
            event.job().rfind("probe-", 0) != 0)
          continue;
        times_[{event.job_uid(), event.attempt()}] =
            absl::FromUnixSeconds(event.time().seconds()) + absl::Nanoseconds(event.time().nanos());
      }
    }
    (void)reader_->Finish();
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::WatchResponse>> reader_;
  std::mutex mutex_;
  Times times_;
  std::thread thread_;
};

// When Prepares arrived at the nodes of this program.
struct Arrivals {
  std::mutex mutex;
  Times times;
};

// Many small tasks that only the second kind of nodes can run.
v1::SubmitJobsRequest Trap(int64_t stuck) {
  v1::SubmitJobsRequest request;
  request.set_request_id("trap");
  const int64_t tasks = stuck * kTasksPerStuckNode;
  for (int64_t left = tasks, number = 0; left > 0; left -= 8'000, ++number) {
    v1::Job& job = *request.add_jobs() = MakeJob(absl::StrCat("trap-", number), "bench");
    v1::TaskGroup& group = *job.mutable_spec()->mutable_groups(0);
    group.set_replicas(static_cast<int32_t>(std::min<int64_t>(left, 8'000)));
    group.set_min_available(1);
    group.mutable_resources()->set_cpu_millis(64'000 / kTasksPerStuckNode);
    (*group.mutable_node_selector()->mutable_match_labels())["kind"] = "b";
    job.mutable_spec()->mutable_prepare_timeout()->set_seconds(3600);
  }
  return request;
}

std::vector<v1::SubmitJobsRequest> Probes(int64_t count, int64_t batch) {
  std::vector<v1::SubmitJobsRequest> requests =
      MakeRequests("probe", "bench", count, batch, /*gpus=*/8);
  for (v1::SubmitJobsRequest& request : requests) {
    for (v1::Job& job : *request.mutable_jobs()) {
      auto& selector = *job.mutable_spec()->mutable_groups(0)->mutable_node_selector();
      (*selector.mutable_match_labels())["kind"] = "a";
    }
  }
  return requests;
}

void Submit(BenchCluster& cluster, const v1::SubmitJobsRequest& request) {
  grpc::ClientContext context;
  v1::SubmitJobsResponse response;
  Check(cluster.jobs().SubmitJobs(&context, request, &response), "SubmitJobs");
}

// Waits until the tasks of the trap are bound: their cost is not measured.
void AwaitTrap(BenchCluster& cluster, int64_t others, bool stuck) {
  const auto begin = Clock::now();
  for (int64_t seen = 0; seen < others * kTasksPerStuckNode;) {
    if (Clock::now() - begin > kTimeout) Fail(absl::StrCat("only ", seen, " tasks are bound"));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    seen = 0;
    const v1::ClusterInfo info = cluster.Info();
    for (const auto& [state, count] : info.tasks()) {
      if (state == (stuck ? "PREPARING" : "RUNNING") || (stuck && state == "BOUND")) seen += count;
    }
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
}

double Quantile(std::vector<double>& values, double quantile) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(quantile * static_cast<double>(values.size() - 1) + 0.5)];
}

std::unique_ptr<Simulation> StartOwnNodes(BenchCluster& cluster, int64_t count,
                                          Arrivals& arrivals) {
  config::v1::Simulation config;
  const std::string yaml = cluster.NodesYaml(
      {.prefix = "a", .count = count, .run_time = "500ms", .labels = "{kind: a}"});
  if (!ReadYaml(yaml, "nodes", &config).ok()) Fail("cannot parse the nodes");
  auto simulation =
      Simulation::Create(config, grpc::InsecureChannelCredentials(), [&arrivals](const TaskId& id) {
        const absl::Time now = absl::Now();
        const std::lock_guard lock(arrivals.mutex);
        arrivals.times.try_emplace({id.job_uid, id.attempt}, now);
      });
  if (!simulation.ok()) Fail(std::string(simulation.status().message()));
  return *std::move(simulation);
}

struct Dispatch {
  double median_ms = 0, p99_ms = 0, peak_mib = 0;
  double p99_of_second_ms = 0;  // of the probes bound in one second; the median over all seconds
};

// One slow sync of the disk delays more than a hundredth of all probes: the overall p99 shows
// whether there was one. Most seconds have none.
double TypicalSecond(const std::vector<std::pair<absl::Time, double>>& probes) {
  std::map<int64_t, std::vector<double>> by_second;
  for (const auto& [placed, milliseconds] : probes) {
    by_second[absl::ToUnixSeconds(placed)].push_back(milliseconds);
  }
  std::vector<double> p99;
  for (auto& [second, milliseconds] : by_second) p99.push_back(Quantile(milliseconds, 0.99));
  return Quantile(p99, 0.5);
}

// Probes at a steady rate, each a whole node for half a second.
Dispatch MeasureDispatch(const Options& options, int64_t nodes, int64_t others, bool stuck) {
  const int64_t count = Scaled(options, 10'000, 100), batch = 10;
  Arrivals arrivals;
  BenchCluster cluster(options, "lease: 1h\nheartbeatInterval: 5s\n");
  cluster.StartServer();
  cluster.WaitServer();
  cluster.StartNodes({.prefix = "b", .count = others, .labels = "{kind: b}"});
  const std::unique_ptr<Simulation> simulation = StartOwnNodes(cluster, nodes - others, arrivals);
  cluster.WaitNodes(nodes);
  cluster.CreateQueue("bench");
  if (stuck) cluster.StopLastNodes();
  Submit(cluster, Trap(others));
  AwaitTrap(cluster, others, stuck);
  PlacedWatch placed(cluster);
  auto next = Clock::now();
  for (const v1::SubmitJobsRequest& request : Probes(count, batch)) {
    Submit(cluster, request);
    next += std::chrono::milliseconds(20);
    std::this_thread::sleep_until(next);
  }
  std::vector<double> milliseconds;
  std::vector<std::pair<absl::Time, double>> probes;
  for (const auto begin = Clock::now(); milliseconds.size() < static_cast<size_t>(count);) {
    if (Clock::now() - begin > kTimeout) Fail("not all probes were dispatched");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    milliseconds.clear();
    probes.clear();
    const Times times = placed.times();
    const std::lock_guard lock(arrivals.mutex);
    for (const auto& [key, at] : times) {
      const auto came = arrivals.times.find(key);
      if (came == arrivals.times.end()) continue;
      milliseconds.push_back(absl::ToDoubleMilliseconds(came->second - at));
      probes.emplace_back(at, milliseconds.back());
    }
  }
  return {Quantile(milliseconds, 0.5), Quantile(milliseconds, 0.99),
          static_cast<double>(cluster.server().PeakResidentBytes()) / (1024.0 * 1024.0),
          TypicalSecond(probes)};
}

}  // namespace

std::vector<Row> StuckAgents(const Options& options) {
  const int64_t nodes = Scaled(options, 10'000, 100), stuck = nodes / 10;
  std::vector<double> ratios, whole_ratios, with, without, second_with, second_without, median_with,
      median_without, peak_with, peak_without;
  for (int run = 0; run < (options.quick ? 1 : 3); ++run) {  // in turn: machine speed varies
    const Dispatch plain_run = MeasureDispatch(options, nodes, stuck, false);
    const Dispatch stuck_run = MeasureDispatch(options, nodes, stuck, true);
    ratios.push_back(stuck_run.p99_of_second_ms / plain_run.p99_of_second_ms);
    whole_ratios.push_back(stuck_run.p99_ms / plain_run.p99_ms);
    second_with.push_back(stuck_run.p99_of_second_ms);
    second_without.push_back(plain_run.p99_of_second_ms);
    with.push_back(stuck_run.p99_ms);
    without.push_back(plain_run.p99_ms);
    median_with.push_back(stuck_run.median_ms);
    median_without.push_back(plain_run.median_ms);
    peak_with.push_back(stuck_run.peak_mib);
    peak_without.push_back(plain_run.peak_mib);
  }
  Row row =
      MedianRow("agents.stuck", "p99 of a second with stuck agents over that without", ratios);
  const auto add = [&row](const char* name, const std::vector<double>& values) {
    row.numbers[name] = MedianRow("", "", values).value;
  };
  add("p99_of_second_ms", second_with);
  add("p99_of_second_ms_without", second_without);
  add("p99_ratio_on_the_whole", whole_ratios);
  add("p99_ms", with);
  add("p99_ms_without", without);
  add("median_ms", median_with);
  add("median_ms_without", median_without);
  add("peak_mib", peak_with);
  add("peak_mib_without", peak_without);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.numbers["stuck"] = static_cast<double>(stuck);
  return {row};
}

}  // namespace berth::bench
