// A gang of 1,024 tasks on as many nodes loses nodes, or one of its tasks fails: how long until all
// run again? berthd with its store on disk; agents with a connection each, in real time.
//
//   frozen .. lease .. silent .. kill grace + margin .. lost .. bound .. running
//            detect              fence                     replan     start
//
// The tasks on the other nodes are stopped as soon as one node is silent ("stop"), so this happens
// while the dead ones are fenced.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"
#include "tests/bench/gang_watch.h"

namespace berth::bench {
namespace {

constexpr int64_t kNodesPerProcess = 50;
constexpr char kLease[] = "lease: 6s\nheartbeatInterval: 2s\n";
constexpr char kGang[] = "gang";
constexpr auto kRestTime = std::chrono::seconds(1);

// The figures of all runs, by name; each a column.
using Samples = std::map<std::string, std::vector<double>>;

double QuantileOf(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

// `value`: the name of the figure for which the row stands, at its 99th percentile.
Row RowOf(const std::string& name, const Samples& samples, const std::string& value) {
  Row row{.name = name, .value = QuantileOf(samples.at(value), 0.99), .unit = "s, p99"};
  for (const auto& [figure, values] : samples) {
    row.numbers[figure + "_p50"] = QuantileOf(values, 0.5);
    row.numbers[figure + "_p99"] = QuantileOf(values, 0.99);
  }
  row.numbers["runs"] = static_cast<double>(samples.at(value).size());
  return row;
}

class RecoverCluster {
 public:
  // Starts `nodes` nodes, each with a connection of its own.
  RecoverCluster(const Options& options, int64_t nodes, const NodeSet& last)
      : cluster_(options, kLease) {
    cluster_.StartServer();
    cluster_.WaitServer();
    for (int64_t done = 0; done < nodes; done += kNodesPerProcess) {
      const int64_t count = std::min(kNodesPerProcess, nodes - done);
      (void)StartSet({.prefix = absl::StrCat("p", done / kNodesPerProcess, "-n"), .count = count});
    }
    last_ = StartSet(last);
    watch_ = std::make_unique<GangWatch>(cluster_);
  }

  size_t StartSet(NodeSet nodes) {
    if (nodes.run_time == NodeSet().run_time) nodes.run_time = "24h";
    nodes.connections = static_cast<int>(nodes.count);
    all_ += nodes.count;
    const size_t number = cluster_.StartNodes(nodes);
    cluster_.WaitNodes(all_);
    return number;
  }

  // Submits the gang, one task of 8 GPUs on each node, and waits until it runs.
  void StartGang(int64_t tasks, int64_t spares = 0) {
    tasks_ = tasks;
    cluster_.CreateQueue("bench");
    v1::SubmitJobsRequest request;
    request.set_request_id(kGang);
    v1::Job& job = *request.add_jobs() = MakeJob(kGang, "bench", /*gpus=*/8);
    job.mutable_spec()->mutable_groups(0)->set_replicas(static_cast<int32_t>(tasks));
    job.mutable_spec()->mutable_groups(0)->set_spares(static_cast<int32_t>(spares));
    job.mutable_spec()->set_max_retries(1000);
    job.mutable_spec()->mutable_retry_backoff();  // none: only the server's own time is of interest
    (void)SendAll(cluster_, {request}, 1, 1);
    (void)watch_->WaitRestarted(static_cast<size_t>(tasks));
  }

  RecoverySeen WaitRestarted() { return watch_->WaitRestarted(static_cast<size_t>(tasks_)); }

  // Rank by node.
  std::map<std::string, int32_t> Ranks() {
    std::map<std::string, int32_t> ranks;
    v1::ListTasksRequest request;
    request.set_job(kGang);
    request.set_page_size(1000);
    do {
      grpc::ClientContext context;
      v1::ListTasksResponse page;
      Check(cluster_.jobs().ListTasks(&context, request, &page), "ListTasks");
      for (const v1::Task& task : page.tasks()) ranks[task.node()] = task.rank();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return ranks;
  }

  int32_t Retries() {
    v1::GetJobRequest request;
    request.set_name(kGang);
    grpc::ClientContext context;
    v1::Job job;
    Check(cluster_.jobs().GetJob(&context, request, &job), "GetJob");
    return job.status().retries();
  }

  BenchCluster& cluster() { return cluster_; }
  GangWatch& watch() { return *watch_; }
  size_t last() const { return last_; }
  int64_t all() const { return all_; }

 private:
  BenchCluster cluster_;
  std::unique_ptr<GangWatch> watch_;
  int64_t all_ = 0;
  int64_t tasks_ = 0;
  size_t last_ = 0;
};

size_t KeptRanks(const std::map<std::string, int32_t>& before,
                 const std::map<std::string, int32_t>& after) {
  size_t kept = 0;
  for (const auto& [node, rank] : after) {
    const auto found = before.find(node);
    kept += found != before.end() && found->second == rank ? 1 : 0;
  }
  return kept;
}

// Two sets of nodes take turns: the gang runs on one of them and on all other nodes, this one dies,
// and the gang continues on the other. The dead nodes then return and are the spare ones.
class TwoSets {
 public:
  TwoSets(const Options& options, int64_t tasks, int64_t dying, int64_t spares)
      : dying_(dying), world_(options, tasks - dying, Set("a")) {
    world_.StartGang(tasks, spares);
    sets_[0] = world_.last();
    sets_[1] = world_.StartSet(Set("b"));
  }

  // One death and recovery.
  void Run(Samples* samples) {
    std::this_thread::sleep_for(kRestTime);
    const auto ranks = world_.Ranks();
    const int32_t retries = world_.Retries();
    const double cpu = world_.cluster().server().CpuSeconds();
    world_.watch().Mark();
    const absl::Time died = absl::Now();
    world_.cluster().FreezeNodes(sets_[turn_]);
    const RecoverySeen seen = world_.WaitRestarted();
    const auto add = [samples](const char* name, double value) {
      (*samples)[name].push_back(value);
    };
    add("detect", absl::ToDoubleSeconds(seen.silent - died));
    add("stop", absl::ToDoubleSeconds(seen.stopped - seen.suspect));
    add("fence", absl::ToDoubleSeconds(seen.lost - seen.silent));
    add("replan", absl::ToDoubleSeconds(seen.bound - seen.lost));
    add("start", absl::ToDoubleSeconds(seen.running - seen.bound));
    add("beside_fencing", absl::ToDoubleSeconds(seen.running - seen.lost));
    add("total", absl::ToDoubleSeconds(seen.running - died));
    add("server_cpu", world_.cluster().server().CpuSeconds() - cpu);
    add("ranks_kept", static_cast<double>(KeptRanks(ranks, world_.Ranks())));
    add("retries", world_.Retries() - retries);
    CheckMoved(seen);
    world_.cluster().RebootNodes(sets_[turn_]);
    turn_ = 1 - turn_;
    world_.cluster().WaitNodes(world_.all());
  }

 private:
  NodeSet Set(const std::string& prefix) const {
    return {.prefix = prefix,
            .count = dying_,
            .labels = absl::StrCat("{topology.berth/rack: ", prefix, "}")};
  }
  // The gang had run on the nodes that died, and has left them.
  void CheckMoved(const RecoverySeen& seen) const {
    const std::string dead = turn_ == 0 ? "a" : "b", spare = turn_ == 0 ? "b" : "a";
    int64_t moved = 0;
    for (const auto& [name, task] : seen.tasks) {
      if (absl::StrContains(name, "-spares-")) continue;
      if (task.node.rfind(dead, 0) == 0) Fail(name + " runs on a dead node");
      moved += task.node.rfind(spare, 0) == 0 ? 1 : 0;
    }
    if (moved != dying_) Fail(absl::StrCat(moved, " tasks moved to spare nodes, not ", dying_));
  }

  const int64_t dying_;
  RecoverCluster world_;
  size_t sets_[2] = {0, 0};
  size_t turn_ = 0;
};

std::vector<Row> Recover(const Options& options, const std::string& name, int64_t dying,
                         int64_t spares = 0) {
  const int64_t tasks = Scaled(options, 1'024, 64);
  dying = std::min(dying, tasks / 8);  // with --quick: below the brake
  TwoSets sets(options, tasks, dying, spares);
  Samples samples;
  for (int run = 0; run < (options.quick ? 1 : 20); ++run) sets.Run(&samples);
  Row row = RowOf(name, samples, "beside_fencing");
  const std::vector<double>& kept = samples.at("ranks_kept");
  row.numbers["ranks_kept_least"] = *std::min_element(kept.begin(), kept.end());
  row.numbers["tasks"] = static_cast<double>(tasks);
  row.numbers["dead_nodes"] = static_cast<double>(dying);
  row.numbers["spares"] = static_cast<double>(spares);
  row.numbers["lease_s"] = 6;
  row.texts["agents"] = "one connection each";
  return {row};
}

}  // namespace

std::vector<Row> RecoverNode(const Options& options) { return Recover(options, "recover.node", 1); }
std::vector<Row> RecoverSpare(const Options& options) {
  return Recover(options, "recover.spare", 1, /*spares=*/1);
}
std::vector<Row> RecoverEight(const Options& options) {
  return Recover(options, "recover.eight", 8);
}
std::vector<Row> RecoverRack(const Options& options) {
  return Recover(options, "recover.rack", 32);
}

std::vector<Row> RecoverInPlace(const Options& options) {
  const int64_t tasks = Scaled(options, 1'024, 64);
  // On the last node each task fails 5 s after its start.
  RecoverCluster world(options, tasks - 1,
                       {.prefix = "fails", .count = 1, .run_time = "5s", .failure_rate = 1});
  world.StartGang(tasks);
  Samples samples;
  for (int run = 0; run < (options.quick ? 1 : 20); ++run) {
    const auto ranks = world.Ranks();
    const int32_t retries = world.Retries();
    const double cpu = world.cluster().server().CpuSeconds();
    world.watch().Mark();
    const RecoverySeen seen = world.WaitRestarted();
    samples["restart"].push_back(absl::ToDoubleSeconds(seen.running - seen.failed));
    samples["stop"].push_back(absl::ToDoubleSeconds(seen.stopped - seen.failed));
    samples["replan"].push_back(absl::ToDoubleSeconds(seen.bound - seen.failed));
    samples["start"].push_back(absl::ToDoubleSeconds(seen.running - seen.bound));
    samples["server_cpu"].push_back(world.cluster().server().CpuSeconds() - cpu);
    samples["retries"].push_back(world.Retries() - retries);
    samples["ranks_kept"].push_back(static_cast<double>(KeptRanks(ranks, world.Ranks())));
  }
  Row row = RowOf("recover.inplace", samples, "restart");
  row.numbers["tasks"] = static_cast<double>(tasks);
  row.texts["agents"] = "one connection each";
  return {row};
}

}  // namespace berth::bench
