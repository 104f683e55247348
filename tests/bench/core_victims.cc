// Plans that evict running jobs: on full clusters, for one gang, in one cycle.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

// Checks and counts the decisions: the gang's placements and the victims.
Figures Evictions(const CoreCluster& cluster, const Plan& plan, JobId gang, size_t tasks) {
  size_t nominated = 0;
  int64_t released = 0, moved = 0;
  std::set<JobId> victims;
  for (const EventBody& decision : plan.decisions) {
    if (const auto* places = std::get_if<TasksNominated>(&decision)) {
      if (places->job == gang) nominated += places->placements.size();
    } else if (const auto* gone = std::get_if<TasksReleased>(&decision)) {
      if (gone->beneficiary != gang || !cluster.state().jobs().At(gone->job).preemptible) {
        Fail("an unexpected eviction");
      }
      victims.insert(gone->job);
      released += static_cast<int64_t>(gone->tasks.size());
      moved += static_cast<int64_t>(gone->moves_to.size());
    }
  }
  if (nominated != tasks) Fail("the gang was not nominated");
  if (victims.empty()) Fail("no task was evicted");
  return {{"victims", static_cast<double>(victims.size())},
          {"tasks_released", static_cast<double>(released)},
          {"tasks_moved", static_cast<double>(moved)}};
}

// Plans for the gang, and checks that it runs once the victims are gone.
Figures MeasurePlan(CoreCluster& cluster, JobSpec gang, double before_mib) {
  const auto tasks = static_cast<size_t>(gang.min_available);
  const double state_mib = OwnResidentMib() - before_mib;
  const JobId id = cluster.Submit(std::move(gang));
  const TimedPlan timed = cluster.PlanTimed();
  Figures figures = Evictions(cluster, timed.plan, id, tasks);
  cluster.ApplyTimed(timed.plan);
  cluster.Check();
  cluster.RunAll();
  cluster.Check();
  if (cluster.state().jobs().At(id).status.state != JobState::kRunning) Fail("gang not running");
  figures["ms"] = timed.seconds * 1e3;
  figures["nodes"] = static_cast<double>(cluster.state().nodes().size());
  figures["gang_tasks"] = static_cast<double>(tasks);
  figures["running_jobs"] = static_cast<double>(cluster.state().jobs_in(JobState::kRunning));
  figures["waiting_jobs"] = static_cast<double>(cluster.state().pending().job_count());
  figures["state_mib"] = state_mib;
  return figures;
}

// Fills the cluster in waves, so that the jobs have different run times so far.
void FillInWaves(CoreCluster& cluster, Workload& workload, int64_t gpus) {
  constexpr int kWaves = 8;
  for (int wave = 0; wave < kWaves; ++wave) {
    workload.SubmitGpus(cluster, gpus / kWaves);
    cluster.RunAll();
    cluster.Advance(absl::Minutes(7));
  }
  cluster.RunAll();
}

// 32 other queues borrow the resources that a queue is entitled to; then its gang is submitted.
Figures MeasureReclaim(int64_t nodes, int32_t tasks) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const int64_t gpus = nodes * kGpusPerNode;
  const std::vector<QueueId> teams = AddTeams(cluster, gpus / 50);
  const QueueId owner =
      cluster.AddQueue({.name = "owner", .deserved = {{"gpu", gpus / 4 * kWhole}}});
  cluster.AddNodes(nodes);
  Workload workload(teams, /*seed=*/17);
  FillInWaves(cluster, workload, cluster.Gpus() * 5 / 4);
  return MeasurePlan(cluster, WholeNodeGang("gang", owner, tasks), before_mib);
}

// One queue uses the whole cluster; its gang with the highest priority is submitted last.
Figures MeasurePreempt(int64_t nodes, int32_t tasks) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const QueueId queue = cluster.AddQueue({.name = "all"});
  cluster.AddNodes(nodes);
  Workload workload({queue, queue, queue, queue, queue, queue, queue, queue}, /*seed=*/19);
  FillInWaves(cluster, workload, cluster.Gpus() * 5 / 4);
  JobSpec gang = WholeNodeGang("gang", queue, tasks);
  gang.priority = 1000;
  return MeasurePlan(cluster, std::move(gang), before_mib);
}

JobSpec OneGpuJob(int64_t number, QueueId queue) {
  JobSpec spec{.name = absl::StrCat("job-", number), .queue = queue, .min_available = 1};
  GroupSpec group{.name = "main"};
  group.shape.cpu_millis = 8'000;
  group.shape.memory_bytes = int64_t{64} << 30;
  group.shape.devices = {{.kind = "gpu", .count = 1}};
  group.shape.tolerations = {{"dedicated", "inference"}};
  spec.groups = {std::move(group)};
  spec.user = absl::StrCat("user-", number % 40);
  spec.preemptible = true;
  spec.walltime = absl::Hours(24);
  return spec;
}

// Fills all nodes with jobs of one GPU of eight queues. Returns a queue that is entitled to a
// quarter.
QueueId FillWithSmallJobs(CoreCluster& cluster, int64_t nodes) {
  const int64_t gpus = nodes * kGpusPerNode;
  std::vector<QueueId> queues;
  for (int q = 0; q < 8; ++q) {
    QueueSpec spec{.name = absl::StrCat("queue-", q), .deserved = {{"gpu", gpus / 16 * kWhole}}};
    spec.weight = 1 + q % 3;
    queues.push_back(cluster.AddQueue(std::move(spec)));
  }
  const QueueId owner =
      cluster.AddQueue({.name = "owner", .deserved = {{"gpu", gpus / 4 * kWhole}}});
  cluster.AddNodes(nodes);
  Dice dice(23);
  for (int64_t job = 0; job < gpus; ++job) {
    cluster.Submit(OneGpuJob(job, queues[dice.Below(queues.size())]));
  }
  cluster.RunAll();
  if (cluster.GpusHeld() != gpus) Fail("the cluster is not full");
  cluster.Advance(absl::Hours(1));
  return owner;
}

// A gang of whole nodes reclaims some of the nodes.
Figures MeasureLarge(int64_t nodes, int32_t tasks) {
  const double before_mib = OwnResidentMib();
  CoreCluster cluster;
  const QueueId owner = FillWithSmallJobs(cluster, nodes);
  return MeasurePlan(cluster, WholeNodeGang("gang", owner, tasks), before_mib);
}

// `jobs` jobs of one GPU are submitted at once, and each of them reclaims one GPU.
Figures MeasureMany(int64_t nodes, int64_t jobs) {
  CoreCluster cluster;
  const QueueId owner = FillWithSmallJobs(cluster, nodes);
  for (int64_t job = 0; job < jobs; ++job) {
    JobSpec spec = OneGpuJob(job, owner);
    spec.name = absl::StrCat("owned-", job);
    cluster.Submit(std::move(spec));
  }
  const TimedPlan timed = cluster.PlanTimed();
  int64_t evicted = 0;
  for (const EventBody& decision : timed.plan.decisions) {
    if (std::holds_alternative<TasksReleased>(decision)) ++evicted;
  }
  if (evicted != jobs) Fail(absl::StrCat(evicted, " of ", jobs, " jobs reclaimed a GPU"));
  cluster.ApplyTimed(timed.plan);
  cluster.Check();
  return {{"us", timed.seconds * 1e6 / static_cast<double>(jobs)},
          {"ms", timed.seconds * 1e3},
          {"nodes", static_cast<double>(nodes)},
          {"state", cluster.StateDigest()},
          {"reclaims", static_cast<double>(jobs)}};
}

// One of three running jobs of one GPU ends.
void FinishSmallJobs(CoreCluster& cluster) {
  std::vector<JobId> ended;
  cluster.state().jobs().ForEach([&](JobId id, const Job& job) {
    const ShapeEntry& shape = cluster.state().interner().Shape(job.groups[0].shape);
    const bool runs = job.status.state == JobState::kRunning;
    if (runs && shape.device_count == 1 && id.value % 3 == 0) ended.push_back(id);
  });
  for (JobId id : ended) {
    cluster.Apply(TaskReported{.task = {id, 0},
                               .attempt = cluster.state().jobs().At(id).tasks[0].attempt,
                               .state = ReportState::kExited});
  }
}

// Free GPUs are fragments of one or two, and many kinds of jobs of four and eight GPUs are pending.
// Every action evaluates every one of them.
Figures MeasureLookAgain(int64_t nodes) {
  CoreCluster cluster;
  const int64_t gpus = nodes * kGpusPerNode;
  const std::vector<QueueId> teams = AddTeams(cluster, gpus / 50);
  cluster.AddNodes(nodes);
  Workload workload(teams, /*seed=*/29, /*kinds=*/8);
  FillInWaves(cluster, workload, gpus);
  FinishSmallJobs(cluster);
  cluster.RunAll();
  cluster.Advance(absl::Minutes(5));
  for (int64_t asked = 0; asked < gpus / 2;) {
    JobSpec spec = workload.Next();
    const int64_t devices = spec.groups[0].shape.devices[0].count;
    if (devices < 4) continue;
    asked += devices;
    cluster.Submit(std::move(spec));
  }
  const double gpus_free = static_cast<double>(cluster.Gpus() - cluster.GpusHeld());
  const TimedPlan timed = cluster.PlanTimed();
  cluster.ApplyTimed(timed.plan);
  cluster.Check();
  Figures figures{
      {"ms", timed.seconds * 1e3},
      {"nodes", static_cast<double>(nodes)},
      {"state", cluster.StateDigest()},
      {"classes", static_cast<double>(cluster.state().pending().classes().size())},
      {"decisions", static_cast<double>(timed.plan.decisions.size())},
      {"waiting_jobs", static_cast<double>(cluster.state().pending().job_count())},
      {"running_jobs", static_cast<double>(cluster.state().jobs_in(JobState::kRunning))},
      {"gpus_free", gpus_free}};
  for (const StageCounters& stage : timed.plan.stages) {
    figures["work_" + stage.name] = static_cast<double>(stage.work);
  }
  return figures;
}

}  // namespace

std::vector<Row> CoreVictims(const Options& options) {
  const int64_t nodes = Scaled(options, 4'000, 640);
  const auto tasks = static_cast<int32_t>(Scaled(options, 128, 8));
  std::vector<Row> rows;
  for (const bool reclaim : {true, false}) {
    if (!options.Wants(reclaim ? "reclaim" : "preempt")) continue;
    rows.push_back(FiguresRow("core.victims", "ms", "ms", Runs(options, 5, [=] {
                                return reclaim ? MeasureReclaim(nodes, tasks)
                                               : MeasurePreempt(nodes, tasks);
                              })));
    rows.back().texts["case"] = reclaim ? "reclaim" : "preempt";
  }
  return rows;
}

std::vector<Row> CoreReclaimLarge(const Options& options) {
  const int64_t nodes = Scaled(options, 1'000, 128);
  const auto tasks = static_cast<int32_t>(Scaled(options, 100, 8));
  return {FiguresRow("core.reclaim_large", "ms", "ms",
                     Runs(options, 5, [=] { return MeasureLarge(nodes, tasks); }))};
}

// The same cluster with four times the work: the cost of one reclaim should stay the same.
std::vector<Row> CoreReclaimMany(const Options& options) {
  const int64_t nodes = Scaled(options, 2'000, 256);
  std::vector<Row> rows;
  for (const int64_t jobs : {nodes / 2, nodes * 2}) {
    rows.push_back(FiguresRow("core.reclaim_many", "us", "us",
                              Runs(options, 3, [=] { return MeasureMany(nodes, jobs); })));
  }
  return rows;
}

std::vector<Row> CoreLookAgain(const Options& options) {
  const int64_t nodes = Scaled(options, 10'000, 640);
  return {FiguresRow("core.look_again", "ms", "ms",
                     Runs(options, 3, [=] { return MeasureLookAgain(nodes); }))};
}

}  // namespace berth::bench
