// One large gang on many nodes, and a cycle that has nothing to do.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

const TasksBound& OnlyBind(const Plan& plan) {
  const TasksBound* bind = nullptr;
  for (const EventBody& decision : plan.decisions) {
    const auto* bound = std::get_if<TasksBound>(&decision);
    if (bound == nullptr || bind != nullptr) Fail("not exactly one gang was bound");
    bind = bound;
  }
  if (bind == nullptr) Fail("the gang was not bound");
  return *bind;
}

// Gangs of whole nodes, one after the other, on a cluster that is a good half full.
// With `images`, half of the nodes hold the gangs' image.
Figures MeasureGang(int64_t nodes, int32_t tasks, bool images) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const int64_t gpus = nodes * kGpusPerNode;
  const std::vector<QueueId> teams = AddTeams(cluster, gpus / 40);
  const QueueId trainers =
      cluster.AddQueue({.name = "trainers", .deserved = {{"gpu", gpus / 5 * kWhole}}});
  cluster.AddNodes(nodes);
  cluster.AddTree();
  if (images) cluster.HoldImages(2);
  Workload(teams, /*seed=*/11).SubmitGpus(cluster, gpus * 55 / 100);
  cluster.RunAll();
  const double state_mib = OwnResidentMib() - before_mib;
  constexpr int kGangs = 21;
  std::vector<double> us;
  for (int gang = 0; gang < kGangs; ++gang) {
    cluster.Advance(absl::Minutes(1));
    cluster.Settle();
    JobSpec spec = WholeNodeGang(absl::StrCat("gang-", gang), trainers, tasks);
    spec.topology = {.mode = TopologyMode::kHard, .highest_tier_name = "hall"};
    if (images) spec.groups[0].image = ImageId{1};
    const JobId id = cluster.Submit(std::move(spec));
    const TimedPlan timed = cluster.PlanTimed();
    us.push_back(timed.seconds * 1e6);
    if (OnlyBind(timed.plan).placements.size() != static_cast<size_t>(tasks)) Fail("partial gang");
    cluster.ApplyTimed(timed.plan);
    if (gang == 0) cluster.Check();
    cluster.RunAll();
    cluster.Finish(id);
  }
  return {{"us", Median(us)},
          {"slowest_us", *std::max_element(us.begin(), us.end())},
          {"nodes", static_cast<double>(nodes)},
          {"tasks", static_cast<double>(tasks)},
          {"state", cluster.StateDigest()},
          {"state_mib", state_mib}};
}

// A full, running cluster, and a backlog in which nothing can start. Only time passes.
Figures MeasureIdle(int64_t nodes, int64_t backlog) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const int64_t gpus = nodes * kGpusPerNode;
  Workload workload(AddTeams(cluster, gpus / 40), /*seed=*/13);
  // All jobs are submitted before the nodes, so that every queue gets its fair share at once.
  int64_t waiting = -gpus;                   // requested GPUs minus existing ones
  const int64_t most = backlog + nodes * 5;  // some of them will run
  for (int64_t jobs = 0; jobs < most || waiting < gpus / 4; ++jobs) {
    JobSpec spec = workload.Next();
    waiting += spec.groups[0].shape.devices[0].count;
    cluster.Submit(std::move(spec));
  }
  cluster.Settle();
  cluster.AddNodes(nodes);
  cluster.RunAll();
  cluster.Advance(absl::Seconds(1));  // tasks bound just now are no victims yet
  cluster.RunAll();
  const double state_mib = OwnResidentMib() - before_mib;
  constexpr int kCycles = 1001;
  std::vector<double> us;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    cluster.Advance(absl::Milliseconds(1));
    const TimedPlan timed = cluster.PlanTimed();
    if (!timed.plan.decisions.empty()) Fail("an idle cycle made a decision");
    us.push_back(timed.seconds * 1e6);
  }
  cluster.Check();
  return {{"us", Median(us)},
          {"slowest_us", *std::max_element(us.begin(), us.end())},
          {"nodes", static_cast<double>(nodes)},
          {"pending_jobs", static_cast<double>(cluster.state().pending().job_count())},
          {"classes", static_cast<double>(cluster.state().pending().classes().size())},
          {"running_jobs", static_cast<double>(cluster.state().jobs_in(JobState::kRunning))},
          {"state_mib", state_mib}};
}

}  // namespace

std::vector<Row> CoreGang(const Options& options) {
  const int64_t nodes = Scaled(options, 16'384, 640);
  const auto tasks = static_cast<int32_t>(Scaled(options, 1'000, 16));
  std::vector<Row> rows;
  for (const bool images : {false, true}) {
    if (!options.Wants(images ? "images" : "plain")) continue;
    rows.push_back(FiguresRow("core.gang", "us", "us",
                              Runs(options, 3, [=] { return MeasureGang(nodes, tasks, images); })));
    rows.back().texts["tier"] = "hard, a hall of 8,192 nodes";
    rows.back().texts["case"] = images ? "images" : "plain";
  }
  return rows;
}

std::vector<Row> CoreIdleCycle(const Options& options) {
  const int64_t nodes = Scaled(options, 10'000, 640), jobs = Scaled(options, 1'000'000, 10'000);
  return {FiguresRow("core.idle_cycle", "us", "us",
                     Runs(options, 3, [=] { return MeasureIdle(nodes, jobs); }))};
}

}  // namespace berth::bench
