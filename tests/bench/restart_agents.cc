// A server with work and agents restarts: how long until it answers, and until all its agents are
// back?
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(120);
constexpr int64_t kNodesPerProcess = 50;

// Each node has a separate connection, like real nodes.
void StartAgents(BenchCluster& cluster, int64_t nodes) {
  for (int64_t done = 0; done < nodes; done += kNodesPerProcess) {
    const int64_t count = std::min(kNodesPerProcess, nodes - done);
    cluster.StartNodes({.prefix = absl::StrCat("r", done / kNodesPerProcess, "-n"),
                        .count = count,
                        .run_time = "24h",
                        .connections = static_cast<int>(count)});
  }
  cluster.WaitNodes(nodes);
}

int64_t JobsIn(BenchCluster& cluster, const std::string& state) {
  const v1::ClusterInfo info = cluster.Info();
  const auto found = info.jobs().find(state);
  return found == info.jobs().end() ? 0 : found->second;
}

// One job of one GPU on every GPU, and the others in a queue that may use no GPUs.
void Fill(BenchCluster& cluster, int64_t jobs, int64_t running) {
  cluster.CreateQueue("busy");
  cluster.CreateQueue("full", /*no_gpus=*/true);
  (void)SendAll(cluster, MakeRequests("run", "busy", running, 1'000, 1), 4, 2);
  (void)SendAll(cluster, MakeRequests("wait", "full", jobs - running, 1'000, 1), 4, 2);
  const auto begin = Clock::now();
  while (JobsIn(cluster, "RUNNING") != running) {
    if (Clock::now() - begin > kTimeout) Fail("not all jobs run");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

struct Back {
  double answering_s = 0, half_s = 0, all_s = 0;
};

Back MeasureBack(BenchCluster& cluster) {
  const std::map<std::string, uint64_t> before = cluster.ReadyEpochs();
  cluster.KillServer();
  Back back;
  const auto begin = Clock::now();
  cluster.StartServer();
  cluster.WaitServer();
  back.answering_s = SecondsSince(begin);
  for (;;) {
    size_t seen = 0;
    for (const auto& [name, epoch] : cluster.ReadyEpochs()) {
      if (epoch == 0) Fail(absl::StrCat(name, " is not READY"));
      seen += epoch > before.at(name) ? 1 : 0;
    }
    if (back.half_s == 0 && seen >= before.size() / 2) back.half_s = SecondsSince(begin);
    if (seen == before.size()) break;
    if (Clock::now() - begin > kTimeout) Fail(absl::StrCat("only ", seen, " agents are back"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  back.all_s = SecondsSince(begin);
  return back;
}

}  // namespace

std::vector<Row> RestartAgents(const Options& options) {
  const int64_t jobs = Scaled(options, 100'000, 1'000), nodes = Scaled(options, 1'000, 100);
  const int64_t running = std::min(8 * nodes, jobs / 2);
  BenchCluster cluster(options);
  cluster.StartServer();
  cluster.WaitServer();
  StartAgents(cluster, nodes);
  Fill(cluster, jobs, running);
  std::vector<double> all, half, answering;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    const Back back = MeasureBack(cluster);
    all.push_back(back.all_s);
    half.push_back(back.half_s);
    answering.push_back(back.answering_s);
    if (JobsIn(cluster, "RUNNING") != running) Fail("a running job was lost");
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  Row row = MedianRow("restart.agents", "s", all);
  row.numbers["answering_s"] = MedianRow("", "", answering).value;
  row.numbers["answering_max_s"] = *std::max_element(answering.begin(), answering.end());
  row.numbers["half_s"] = MedianRow("", "", half).value;
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["running"] = static_cast<double>(running);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.texts["agents"] = "one connection each";
  return {row};
}

}  // namespace berth::bench
