// How fast the core places tasks: one core, decisions only. Applying them is timed separately.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

// The cluster was in use, and is now cordoned for maintenance; a backlog of jobs, already
// evaluated, is pending. Then the nodes are uncordoned, and cycles follow until nothing more is
// placed. Pending jobs request `offered` times all GPUs.
struct Fill {
  int64_t nodes = 0;
  double offered = 1;
  bool uniform = false;  // equal nodes, one queue, four kinds of jobs
  bool images = false;   // each job has one of four images, each node holds one of them
  int64_t Gpus() const {
    return static_cast<int64_t>(static_cast<double>(nodes * kGpusPerNode) * offered);
  }
};

int64_t Placements(const Plan& plan) {
  int64_t tasks = 0;
  for (const EventBody& decision : plan.decisions) {
    const auto* bound = std::get_if<TasksBound>(&decision);
    if (bound != nullptr) tasks += static_cast<int64_t>(bound->placements.size());
  }
  return tasks;
}

// A cycle in which every class is found not to fit, after an event that could help any of them.
double LookAgainMs(CoreCluster& cluster) {
  cluster.Apply(QueueOpened{.id = kRootQueue, .open = true});
  const TimedPlan again = cluster.PlanTimed();
  cluster.ApplyTimed(again.plan);
  return again.seconds * 1e3;
}

// Submits jobs that request this many GPUs together; returns the number of jobs. Each job has a
// unique name.
using Submit = std::function<int64_t(CoreCluster&, int64_t gpus)>;

Submit MixedJobs(CoreCluster& cluster, const Fill& fill) {
  auto workload =
      std::make_shared<Workload>(AddTeams(cluster, fill.nodes * kGpusPerNode / 10), /*seed=*/7);
  return [workload](CoreCluster& to, int64_t gpus) { return workload->SubmitGpus(to, gpus); };
}

Submit UniformJobs(CoreCluster& cluster, bool images) {
  const QueueId queue = cluster.AddQueue({.name = "all"});
  return [queue, images, submitted = int64_t{0}](CoreCluster& to, int64_t gpus) mutable {
    int64_t jobs = 0;
    for (int64_t asked = 0; asked < gpus; ++jobs) {
      JobSpec spec{.name = absl::StrCat("job-", submitted++), .queue = queue, .min_available = 1};
      GroupSpec group{.name = "main"};
      const int32_t count = 1 << (submitted % 4);
      group.shape.cpu_millis = count * 10'000;
      group.shape.memory_bytes = int64_t{count} * 64 << 30;
      group.shape.devices = {{.kind = "gpu", .count = count}};
      if (images) group.image = ImageId{1 + static_cast<uint64_t>(submitted / 4 % 4)};
      spec.groups = {std::move(group)};
      spec.ttl_after_finished = absl::Minutes(5);
      to.Submit(std::move(spec));
      asked += count;
    }
    return jobs;
  };
}

Figures Measure(const Fill& fill) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const Submit submit = fill.uniform ? UniformJobs(cluster, fill.images) : MixedJobs(cluster, fill);
  cluster.AddNodes(fill.nodes, fill.uniform);
  if (fill.images) cluster.HoldImages(4);
  submit(cluster, fill.Gpus());
  cluster.RunThrough();
  cluster.CordonAll(true);
  const int64_t jobs = submit(cluster, fill.Gpus());
  cluster.Settle();
  cluster.CordonAll(false);
  const double resident_mib = OwnResidentMib() - before_mib;
  const size_t classes = cluster.state().pending().classes().size();
  double plan_s = 0, apply_s = 0, settle_s = 0;
  int64_t placed = 0, cycles = 0;
  for (int64_t now = -1; now != 0; ++cycles) {
    const TimedPlan timed = cluster.PlanTimed();
    now = Placements(timed.plan);
    placed += now;
    if (now > 0) plan_s += timed.seconds;
    if (now == 0) settle_s = timed.seconds;
    apply_s += cluster.ApplyTimed(timed.plan);
    if (cycles == 0 && now == 0) Fail("nothing was placed");
  }
  cluster.Check();
  const auto count = static_cast<double>(placed);
  return {{"placements_per_s", count / plan_s},
          {"us_per_placement", plan_s * 1e6 / count},
          {"apply_us_per_placement", apply_s * 1e6 / count},
          {"placements", count},
          {"cycles", static_cast<double>(cycles)},
          {"next_cycle_ms", settle_s * 1e3},
          {"nodes", static_cast<double>(fill.nodes)},
          {"jobs", static_cast<double>(jobs)},
          {"classes", static_cast<double>(classes)},
          {"gpus_held_percent",
           100.0 * static_cast<double>(cluster.GpusHeld()) / static_cast<double>(cluster.Gpus())},
          {"look_again_ms", fill.offered > 1 ? LookAgainMs(cluster) : 0},
          {"state", cluster.StateDigest()},
          {"state_mib", resident_mib},
          {"peak_mib", OwnResidentMib() - before_mib}};
}

}  // namespace

std::vector<Row> CoreFill(const Options& options) {
  std::vector<Row> rows;
  for (const std::string name : {"mixed", "uniform", "images"}) {
    if (!options.Wants(name)) continue;
    const Fill fill{.nodes = Scaled(options, 10'000, 2'000),
                    .offered = 0.9,
                    .uniform = name != "mixed",
                    .images = name == "images"};
    rows.push_back(FiguresRow("core.fill", "placements/s", "placements_per_s",
                              Runs(options, 5, [&fill] { return Measure(fill); })));
    rows.back().texts["case"] = name;
  }
  return rows;
}

// Every pending job is placed: only the size of the cluster differs.
std::vector<Row> CoreScale(const Options& options) {
  std::vector<double> us;
  Row row;
  for (int64_t nodes : {1'000, 10'000, 100'000}) {
    const Fill fill{.nodes = Scaled(options, nodes, 640), .offered = 0.9};
    row = FiguresRow("core.scale", "ratio", "us_per_placement",
                     Runs(options, nodes > 10'000 ? 3 : 5, [&fill] { return Measure(fill); }));
    us.push_back(row.value);
  }
  row.value = us.back() / us.front();
  for (const char* key : {"min", "max", "look_again_ms", "cycles"}) row.numbers.erase(key);
  row.numbers["us_at_1k"] = us[0];
  row.numbers["us_at_10k"] = us[1];
  row.numbers["us_at_100k"] = us[2];
  row.texts["other_figures"] = "of the largest";
  return {row};
}

}  // namespace berth::bench
