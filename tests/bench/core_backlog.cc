// A full cluster with a long backlog in which no two jobs are alike. Running jobs end one after the
// other; each end is planned until nothing more is decided.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

constexpr Duration kBetweenEnds = absl::Milliseconds(300);  // 12,000 jobs that run for an hour
constexpr size_t kMostEnds = 1'000, kLeastEnds = 20;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Backlog {
  int64_t nodes = 0;
  int64_t jobs = 0;          // pending
  bool constrained = false;  // models, zones and tolerations differ as well; walltimes do not
  size_t preemptible = 0;    // percent
  double most_seconds = 0;   // of measured ends: later ends are left out
};

// Jobs of 1 to 64 GPUs: of up to 8 in one task, larger ones in gangs of whole nodes. Each has its
// own amounts of CPU and memory, and its own walltime or its own constraints.
class UnlikeJobs {
 public:
  UnlikeJobs(std::vector<QueueId> queues, const Backlog& of)
      : queues_(std::move(queues)), constrained_(of.constrained), preemptible_(of.preemptible) {}

  JobSpec Next();
  int64_t last_gpus() const { return last_gpus_; }

 private:
  void Constrain(TaskShape& shape);

  Dice dice_{31};
  const std::vector<QueueId> queues_;
  const bool constrained_;
  const size_t preemptible_;
  int64_t submitted_ = 0;
  int64_t last_gpus_ = 0;
};

JobSpec UnlikeJobs::Next() {
  // Of 100 jobs. On average 6.7 GPUs.
  static constexpr struct {
    size_t below;
    int32_t tasks, gpus;
  } kSizes[] = {{40, 1, 1}, {55, 1, 2}, {70, 1, 4}, {85, 1, 8},
                {93, 2, 8}, {98, 4, 8}, {100, 8, 8}};
  const size_t roll = dice_.Below(100);
  const auto& size =
      *std::find_if(std::begin(kSizes), std::end(kSizes), [&](auto& s) { return roll < s.below; });
  JobSpec spec{.name = absl::StrCat("job-", submitted_++),
               .queue = queues_[dice_.Below(queues_.size())],
               .min_available = size.tasks};
  GroupSpec group{.name = "main", .replicas = size.tasks, .min_available = size.tasks};
  group.shape.devices = {{.kind = "gpu", .count = size.gpus}};
  group.shape.cpu_millis = size.gpus * (2'000 + static_cast<int64_t>(dice_.Below(14'000)));
  group.shape.memory_bytes = size.gpus * (16'384 + static_cast<int64_t>(dice_.Below(100'000)))
                             << 20;
  spec.walltime = absl::Hours(24);
  if (constrained_) {
    Constrain(group.shape);
  } else {
    spec.walltime = absl::Seconds(600 + static_cast<int64_t>(dice_.Below(72 * 3600)));
  }
  spec.groups = {std::move(group)};
  spec.user = absl::StrCat("user-", dice_.Below(200));
  spec.preemptible = dice_.Percent(preemptible_);
  spec.checkpoint_interval = absl::Minutes(30);
  spec.ttl_after_finished = absl::Minutes(5);
  last_gpus_ = size.tasks * size.gpus;
  return spec;
}

void UnlikeJobs::Constrain(TaskShape& shape) {
  const size_t model = dice_.Below(100);
  if (model < 35) {
    shape.devices[0].models = {"H100", "H200"};
  } else if (model < 45) {
    shape.devices[0].models = {"A100", "H100"};
  }
  if (dice_.Percent(10)) shape.match_labels = {{"zone", absl::StrCat("z", dice_.Below(4))}};
  if (dice_.Percent(20)) shape.tolerations = {{"dedicated", "inference"}};
}

// What happens on the nodes: bound tasks run, released ones end. Returns whether anything did.
bool ReportDecided(CoreCluster& cluster, const std::vector<EventBody>& decisions) {
  std::vector<JobId> changed;
  for (const EventBody& decision : decisions) {
    if (const auto* bound = std::get_if<TasksBound>(&decision)) changed.push_back(bound->job);
    if (const auto* gone = std::get_if<TasksReleased>(&decision)) changed.push_back(gone->job);
  }
  bool any = false;
  for (JobId id : changed) any |= cluster.ReportOf(id);
  return any;
}

struct Counted {
  uint64_t cycles = 0, decisions = 0;
  uint64_t considered = 0;  // times that a job was considered
};

// Returns the seconds of planning until nothing more is decided.
double PlanUntilQuiet(CoreCluster& cluster, Counted* counted) {
  double seconds = 0;
  std::vector<EventBody> all;
  do {
    all.clear();
    while (true) {
      const TimedPlan timed = cluster.PlanTimed();
      seconds += timed.seconds;
      ++counted->cycles;
      counted->considered += timed.plan.counters.jobs_considered;
      if (timed.plan.decisions.empty()) break;
      all.insert(all.end(), timed.plan.decisions.begin(), timed.plan.decisions.end());
      cluster.ApplyTimed(timed.plan);
    }
    counted->decisions += all.size();
  } while (ReportDecided(cluster, all));
  return seconds;
}

// The jobs that run now, in an arbitrary but fixed order.
std::vector<JobId> Running(const CoreCluster& cluster, Dice& dice) {
  std::vector<JobId> jobs;
  cluster.state().jobs().ForEach([&](JobId id, const Job& job) {
    if (job.status.state == JobState::kRunning) jobs.push_back(id);
  });
  for (size_t i = jobs.size(); i > 1; --i) std::swap(jobs[i - 1], jobs[dice.Below(i)]);
  return jobs;
}

void Fill(CoreCluster& cluster, UnlikeJobs& jobs) {
  for (int64_t asked = 0; asked < cluster.Gpus(); asked += jobs.last_gpus()) {
    cluster.Submit(jobs.Next());
  }
  cluster.RunAll();
  cluster.Advance(absl::Hours(1));
}

Figures MeasureBacklog(const Backlog& of) {
  const double before_mib = OwnResidentMib();
  constexpr int kQueues = 8;
  CoreCluster cluster;
  std::vector<QueueId> queues;
  for (int q = 0; q < kQueues; ++q) {
    queues.push_back(cluster.AddQueue({.name = absl::StrCat("queue-", q)}));
  }
  cluster.AddNodes(of.nodes, /*alike=*/!of.constrained);
  UnlikeJobs jobs(queues, of);
  Fill(cluster, jobs);
  while (static_cast<int64_t>(cluster.state().pending().job_count()) < of.jobs) {
    cluster.Submit(jobs.Next());
  }
  Counted counted;
  const double first_seconds = PlanUntilQuiet(cluster, &counted);
  Dice dice(37);
  const std::vector<JobId> running = Running(cluster, dice);
  std::vector<double> us;
  const double begin = Seconds();
  counted = {};
  double state = 0;
  for (size_t i = 0; i < running.size() && us.size() < kMostEnds; ++i) {
    if (cluster.state().jobs().At(running[i]).status.state != JobState::kRunning) continue;
    cluster.Advance(kBetweenEnds);
    cluster.EndTasks(running[i]);
    us.push_back(PlanUntilQuiet(cluster, &counted) * 1e6);
    if (us.size() == kLeastEnds) state = cluster.StateDigest();
    if (us.size() >= kLeastEnds && Seconds() - begin > of.most_seconds) break;
  }
  cluster.Check();
  std::sort(us.begin(), us.end());
  const auto ends = static_cast<double>(us.size());
  return {{"us", us[us.size() / 2]},
          {"p99_us", us[us.size() * 99 / 100]},
          {"slowest_us", us.back()},
          {"ends", ends},
          {"decisions", static_cast<double>(counted.decisions)},
          {"cycles_per_end", static_cast<double>(counted.cycles) / ends},
          {"considered_per_end", static_cast<double>(counted.considered) / ends},
          {"first_ms", first_seconds * 1e3},
          {"nodes", static_cast<double>(of.nodes)},
          {"gpus_free", static_cast<double>(cluster.Gpus() - cluster.GpusHeld())},
          {"pending_jobs", static_cast<double>(cluster.state().pending().job_count())},
          {"classes", static_cast<double>(cluster.state().pending().classes().size())},
          {"running_jobs", static_cast<double>(cluster.state().jobs_in(JobState::kRunning))},
          {"state", state},
          {"state_mib", OwnResidentMib() - before_mib}};
}

// Each with ten times the backlog as well: the cost of an end should not grow with it. By default
// jobs are not preemptible; with 80 % that are, actions look for victims.
std::vector<Row> BacklogRows(const Options& options, const std::string& name, int64_t jobs,
                             bool constrained) {
  static constexpr struct {
    const char* name;
    int64_t times;
    size_t preemptible;
  } kCases[] = {{"1x", 1, 0}, {"10x", 10, 0}, {"preemptible", 1, 80}};
  std::vector<Row> rows;
  for (const auto& one : kCases) {
    if (!options.Wants(one.name)) continue;
    const Backlog of{.nodes = Scaled(options, 10'000, 256),
                     .jobs = Scaled(options, jobs * one.times, 1'000 * one.times),
                     .constrained = constrained,
                     .preemptible = one.preemptible,
                     .most_seconds = options.quick ? 5.0 : 60.0};
    const int runs = one.times == 1 ? 3 : 1;
    rows.push_back(
        FiguresRow(name, "us", "us", Runs(options, runs, [=] { return MeasureBacklog(of); })));
    rows.back().texts["case"] = one.name;
  }
  return rows;
}

}  // namespace

std::vector<Row> CoreBacklog(const Options& options) {
  return BacklogRows(options, "core.backlog", 100'000, /*constrained=*/false);
}

std::vector<Row> CoreShapes(const Options& options) {
  return BacklogRows(options, "core.shapes", 10'000, /*constrained=*/true);
}

}  // namespace berth::bench
