#include "clients/replay/replay.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "clients/sim/scenario_load.h"
#include "clients/sim/sim_cluster.h"
#include "clients/sim/specs.h"

namespace berth::replay {
namespace {

constexpr const char* kOneQueue = "replay";
// Of cycles at one moment: more only if decisions never settle.
constexpr int kMaxCyclesAtOnce = 100'000;

class World {
 public:
  World(const Workload& workload, Policies policies, const ReplayOptions& options)
      : workload_(workload),
        options_(options),
        cluster_(std::move(policies), ScenarioStart(), SimOptions{}),
        begin_(ScenarioStart()) {
    run_.outcomes.resize(workload.jobs.size());
  }

  absl::Status Build(const sim::v1::Scenario& cluster);
  absl::StatusOr<ReplayRun> Run();

 private:
  absl::Status Submit(size_t index);
  absl::StatusOr<QueueId> QueueOf(const TraceJob& job) const;
  // Cycles until one has nothing to do.
  absl::Status Settle();
  void Tell(const EventBody& decision);
  void Tell(const TasksBound& bound);
  void Tell(const TasksReleased& released);
  void AdvanceTo(Time when);
  void AddAmounts(const Resources& amounts, Duration time, std::map<std::string, double>* to) const;
  Duration Elapsed() const { return cluster_.now() - begin_ + offset_; }

  const Workload& workload_;
  const ReplayOptions& options_;
  SimCluster cluster_;
  const Time begin_;
  Duration offset_;  // of the first submit: the simulation begins there
  bool own_queue_ = false;
  absl::flat_hash_map<JobId, size_t> index_;  // of jobs that have not ended
  ReplayRun run_;
};

absl::Status World::Build(const sim::v1::Scenario& cluster) {
  if (cluster.jobs_size() > 0) return absl::InvalidArgumentError("a cluster has no jobs");
  if (cluster.steps_size() > 0) return absl::InvalidArgumentError("a cluster has no steps");
  if (auto status = LoadScenario(cluster, &cluster_); !status.ok()) return status;
  own_queue_ = cluster.queues_size() == 0;
  if (own_queue_) {
    sim::v1::Queue queue;
    queue.set_name(kOneQueue);
    if (auto status = CreateQueue(queue, "queues[0]", &cluster_); !status.ok()) return status;
  }
  const Interner& interner = cluster_.state().interner();
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    const int64_t amount = cluster_.state().capacity()[kind];
    if (amount > 0) run_.capacity[interner.KindName(kind)] = InUnits(amount, UnitOf(kind));
  }
  return absl::OkStatus();
}

absl::StatusOr<QueueId> World::QueueOf(const TraceJob& job) const {
  const std::string& name = own_queue_ ? kOneQueue : job.queue;
  const Queue* queue = cluster_.state().FindQueue(name);
  if (queue != nullptr) return queue->id;
  return absl::InvalidArgumentError(
      absl::StrCat("the cluster has no queue \"", name, "\", which ", job.name, " names"));
}

absl::Status World::Submit(size_t index) {
  const TraceJob& from = workload_.jobs[index];
  const absl::StatusOr<QueueId> queue = QueueOf(from);
  if (!queue.ok()) return queue.status();
  // Names of a log may repeat.
  JobSpec spec{.name = NameOfRecord(static_cast<int64_t>(index) + 1),
               .queue = *queue,
               .priority = from.priority};
  spec.strategy = options_.jobs.strategy;
  spec.topology = options_.jobs.topology;
  spec.min_available = from.tasks;
  if (options_.jobs.min_available > 0) {
    spec.min_available = std::min(from.tasks, options_.jobs.min_available);
  }
  spec.preemptible = from.preemptible;
  spec.user = from.user;
  spec.walltime = from.requested;
  spec.ttl_after_finished = absl::ZeroDuration();
  GroupSpec group{.name = "main", .replicas = from.tasks, .min_available = spec.min_available};
  group.shape = from.shape;
  spec.groups.push_back(std::move(group));
  const JobId id = cluster_.state().next_job_id();
  const absl::Status status = cluster_.Happen(JobSubmitted{id, std::move(spec)});
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(from.name, ": ", status.message()));
  }
  if (options_.progress != nullptr) {
    options_.progress->Submitted(id, index);
  } else {
    cluster_.SetRunTime(id, from.run);
  }
  index_[id] = index;
  return absl::OkStatus();
}

void World::Tell(const TasksBound& bound) {
  const Job& job = cluster_.state().jobs().At(bound.job);
  const size_t members = static_cast<size_t>(TallyOf(job).Members()) + bound.placements.size();
  if (members < job.tasks.size()) return;
  Outcome& outcome = run_.outcomes[index_.at(bound.job)];
  outcome.first_start = std::min(outcome.first_start, Elapsed());
}

void World::Tell(const TasksReleased& released) {
  if (released.beneficiary == JobId{}) return;
  const Job& job = cluster_.state().jobs().At(released.job);
  for (uint32_t index : released.tasks) {
    const Task& task = job.tasks[index];
    ++run_.evictions;
    if (task.state != TaskState::kRunning) continue;
    const ShapeId shape = job.groups[GroupOf(job, index)].shape;
    AddAmounts(cluster_.state().interner().Shape(shape).resources, cluster_.now() - task.start,
               &run_.lost);
  }
}

void World::Tell(const EventBody& decision) {
  if (options_.progress != nullptr) options_.progress->Decided(cluster_, decision);
  if (const auto* bound = std::get_if<TasksBound>(&decision)) Tell(*bound);
  if (const auto* released = std::get_if<TasksReleased>(&decision)) Tell(*released);
  const auto* changed = std::get_if<JobStatusChanged>(&decision);
  if (changed == nullptr || !Ended(changed->status.state)) return;
  const auto found = index_.find(changed->job);
  run_.outcomes[found->second].end = Elapsed();
  cluster_.ForgetRunTime(changed->job);
  index_.erase(found);
}

absl::Status World::Settle() {
  for (int i = 0; i < kMaxCyclesAtOnce; ++i) {
    const auto plan = cluster_.Cycle([this](const EventBody& decision) { Tell(decision); });
    if (!plan.ok()) return plan.status();
    if (!cluster_.quiet()) continue;
    if (options_.progress != nullptr) options_.progress->Settled(&cluster_);
    return absl::OkStatus();
  }
  return absl::InternalError("something still changes after very many cycles");
}

void World::AddAmounts(const Resources& amounts, Duration time,
                       std::map<std::string, double>* to) const {
  const Interner& interner = cluster_.state().interner();
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (amounts[kind] == 0) continue;
    (*to)[interner.KindName(kind)] +=
        InUnits(amounts[kind], UnitOf(kind)) * absl::ToDoubleSeconds(time);
  }
}

void World::AdvanceTo(Time when) {
  const Duration time = when - cluster_.now();
  AddAmounts(cluster_.state().queues().At(kRootQueue).allocated, time, &run_.held);
  cluster_.Advance(time);
}

absl::StatusOr<ReplayRun> World::Run() {
  const std::vector<TraceJob>& jobs = workload_.jobs;
  offset_ = jobs.empty() ? absl::ZeroDuration() : jobs.front().submit;
  const auto arrival = [&](size_t i) { return begin_ + (jobs[i].submit - offset_); };
  for (size_t next = 0;;) {
    for (; next < jobs.size() && arrival(next) <= cluster_.now(); ++next) {
      if (auto status = Submit(next); !status.ok()) return status;
    }
    if (auto status = Settle(); !status.ok()) return status;
    Time then = cluster_.NextDue();
    if (next < jobs.size()) then = std::min(then, arrival(next));
    // Nothing runs and nothing will come: what waits now waits for ever.
    const bool empty = cluster_.state().queues().At(kRootQueue).allocated.IsZero();
    if ((empty && next == jobs.size()) || then == absl::InfiniteFuture()) break;
    AdvanceTo(then);
  }
  run_.cycles = static_cast<int64_t>(cluster_.cycles());
  return std::move(run_);
}

}  // namespace

sim::v1::Scenario OneMachine(int64_t cores) {
  sim::v1::Scenario scenario;
  sim::v1::Node& node = *scenario.add_nodes();
  node.set_name("machine");
  node.set_cpu_millis(cores * 1000);
  return scenario;
}

absl::StatusOr<ReplayRun> Replay(const Workload& workload, const sim::v1::Scenario& cluster,
                                 const ReplayOptions& options) {
  const auto config = ToPolicyConfig(cluster.config(), "config");
  if (!config.ok()) return config.status();
  World world(workload, *Policies::Create(*config), options);
  if (auto status = world.Build(cluster); !status.ok()) return status;
  return world.Run();
}

}  // namespace berth::replay
