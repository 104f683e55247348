#include "offline/replay/replay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/topology/gang_topology.h"
#include "offline/replay/faults.h"
#include "offline/replay/meter.h"
#include "offline/replay/mix_feed.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/sim_cluster.h"
#include "offline/sim/specs.h"

namespace berth::replay {
namespace {

constexpr const char* kOneQueue = "replay";
// Limit of cycles at one moment. It is only reached if decisions never settle.
constexpr int kMaxCyclesAtOnce = 100'000;
// For replays with faults: they measure how long jobs take, not how patient their users are.
constexpr int32_t kNoRetryLimit = 1'000'000'000;

class World {
 public:
  World(const Workload& workload, Policies policies, const ReplayOptions& options)
      : workload_(workload),
        options_(options),
        turns_(TurnsOf(options.outages)),
        policy_(policies.sharing().policy),
        cluster_(std::move(policies), ScenarioStart(), SimOptions{}),
        mix_(policy_, &cluster_),
        begin_(ScenarioStart()) {}

  absl::Status Build(const sim::v1::Scenario& cluster);
  absl::StatusOr<ReplayRun> Run();

 private:
  // The name of the queue of each job. INVALID_ARGUMENT for a queue that the cluster does not have.
  absl::StatusOr<std::vector<std::string>> QueueNames(bool own_queue) const;
  absl::Status CheckOutages() const;
  absl::Status PrepareFaults();
  JobSpec SpecFrom(const TraceJob& from, size_t index) const;
  absl::Status Submit(size_t index);
  absl::Status Turn(NodeId id, bool up);
  absl::Status Do(const FaultAct& act);
  absl::Status TaskFails(const FaultAct& act);
  absl::Status TaskHangs(const FaultAct& act);
  // Applies external events up to now: submits, outages and faults.
  absl::Status Arrive();
  // Runs cycles until one has nothing to do.
  absl::Status Settle();
  void Follow(const EventBody& decision);
  void Follow(const TasksBound& bound);
  void AdvanceTo(Time when);
  // The gang of the job is stopped: it continues from its last checkpoint.
  void KeepCheckpoint(const Job& job);
  // The time of the next external event, without faults.
  Time NextArrival() const;
  // When something happens next; nullopt: nothing will.
  std::optional<Time> Next() const;
  Duration Elapsed() const { return cluster_.now() - begin_ + offset_; }
  Time TimeOf(Duration elapsed) const { return begin_ + (elapsed - offset_); }
  void NameTiers();
  bool Stopped() const;

  const Workload& workload_;
  const ReplayOptions& options_;
  const std::vector<NodeTurn> turns_;
  const SharingPolicy policy_;
  SimCluster cluster_;
  MixFeed mix_;
  const Time begin_;
  Duration offset_;                    // of the first submit, where the simulation begins
  std::vector<std::string> queue_of_;  // by index in the workload
  size_t next_job_ = 0, next_turn_ = 0;
  size_t live_ = 0;                 // jobs that have arrived and not ended
  std::map<JobId, Duration> kept_;  // by stopped job: work that is not lost
  ReplayRun run_;
  std::optional<Meter> meter_;
  std::optional<Faults> faults_;
};

absl::Status World::Build(const sim::v1::Scenario& cluster) {
  if (cluster.jobs_size() > 0) return absl::InvalidArgumentError("a cluster has no jobs");
  if (cluster.training_size() > 0) {
    return absl::InvalidArgumentError("training: belongs in a --config");
  }
  if (cluster.steps_size() > 0) return absl::InvalidArgumentError("a cluster has no steps");
  if (auto status = LoadScenario(cluster, &cluster_); !status.ok()) return status;
  const bool own_queue = cluster.queues_size() == 0;
  if (own_queue) {
    sim::v1::Queue queue;
    queue.set_name(kOneQueue);
    if (auto status = CreateQueue(queue, "queues[0]", &cluster_); !status.ok()) return status;
  }
  auto names = QueueNames(own_queue);
  if (!names.ok()) return names.status();
  queue_of_ = *std::move(names);
  if (auto status = CheckOutages(); !status.ok()) return status;
  run_.capacity = cluster_.state().capacity();
  if (options_.places) run_.names = PlaceNames(cluster_.state());
  meter_.emplace(workload_, queue_of_, cluster_.state(), options_, &run_);
  if (auto status = PrepareFaults(); !status.ok()) return status;
  cluster_.SetObserver([this](const EventBody& event) { meter_->After(event); });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> World::QueueNames(bool own_queue) const {
  std::vector<std::string> names;
  names.reserve(workload_.jobs.size());
  for (const TraceJob& job : workload_.jobs) {
    names.push_back(own_queue ? kOneQueue : job.queue);
    if (cluster_.state().FindQueue(names.back()) != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat("the cluster has no queue \"", names.back(),
                                                   "\", which ", job.name, " names"));
  }
  return names;
}

absl::Status World::CheckOutages() const {
  for (const Outage& outage : options_.outages) {
    if (cluster_.state().FindNode(outage.node) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has no node \"", outage.node, "\", which has an outage"));
  }
  return absl::OkStatus();
}

absl::Status World::PrepareFaults() {
  if (options_.faults == nullptr) return absl::OkStatus();
  if (options_.progress == nullptr || !options_.outages.empty()) {
    return absl::InvalidArgumentError("faults need a model of progress, and take no outages");
  }
  const FaultModel& model = *options_.faults;
  const auto nodes = static_cast<int64_t>(cluster_.state().nodes().size());
  if (auto status = CheckFrequency(model, nodes); !status.ok()) return status;
  faults_.emplace(model, options_.fault_seed, cluster_.state(), begin_);
  return absl::OkStatus();
}

// Tasks may request nothing, so allocated amounts do not show this.
bool AnythingRuns(const ClusterState& state) {
  for (size_t i = 0; i < kTaskStates; ++i) {
    const auto task_state = static_cast<TaskState>(i);
    if (Occupies(task_state) && state.tasks_in(task_state) > 0) return true;
  }
  return false;
}

// A gang of all tasks with the fields of the log, unless a minimum is set for jobs of one group.
JobSpec PlainSpec(const TraceJob& from, const JobTemplate& how) {
  JobSpec spec;
  const auto add = [&](const std::string& name, int32_t tasks, const TaskShape& shape) {
    GroupSpec group{.name = name, .replicas = tasks, .min_available = tasks};
    if (how.min_available > 0 && from.more.empty()) {
      group.min_available = std::min(tasks, how.min_available);
    }
    group.shape = shape;
    spec.min_available += group.min_available;
    spec.groups.push_back(std::move(group));
  };
  add("main", from.tasks, from.shape);
  for (const TraceGroup& group : from.more) add(group.name, group.tasks, group.shape);
  return spec;
}

JobSpec World::SpecFrom(const TraceJob& from, size_t index) const {
  JobSpec spec = from.spec == nullptr ? PlainSpec(from, options_.jobs) : *from.spec;
  // Names of a log may repeat.
  spec.name = NameOfRecord(static_cast<int64_t>(index) + 1);
  spec.queue = cluster_.state().FindQueue(queue_of_[index])->id;
  spec.dependencies.clear();
  const JobTemplate& how = options_.jobs;
  if (spec.strategy == Strategy::kDefault) spec.strategy = how.strategy;
  if (spec.topology.mode == TopologyMode::kNone) spec.topology = how.topology;
  spec.priority = from.priority;
  spec.preemptible = from.preemptible || how.preemptible;
  if (spec.checkpoint_interval == absl::InfiniteDuration()) {
    spec.checkpoint_interval = how.checkpoint_interval;
  }
  if (options_.progress != nullptr) {
    spec.checkpoint_interval =
        options_.progress->CheckpointInterval(index).value_or(absl::InfiniteDuration());
  }
  if (options_.faults != nullptr) spec.max_retries = kNoRetryLimit;
  spec.user = from.user;
  spec.walltime = from.requested;
  spec.ttl_after_finished = absl::ZeroDuration();
  AddDefaultTopology(cluster_.state(), GangTopology{}, &spec);
  for (Time* time : {&spec.deadline, &spec.start_after}) {
    const bool is_set = *time != absl::InfiniteFuture() && *time != absl::InfinitePast();
    if (is_set) *time = TimeOf(*time - absl::UnixEpoch());
  }
  return spec;
}

absl::Status World::Submit(size_t index) {
  const TraceJob& from = workload_.jobs[index];
  const JobId id = cluster_.state().next_job_id();
  const absl::Status status = cluster_.Happen(JobSubmitted{id, SpecFrom(from, index)});
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(from.name, ": ", status.message()));
  }
  if (options_.progress != nullptr) {
    options_.progress->Submitted(id, index);
  } else {
    cluster_.SetRunTime(id, from.run);
  }
  meter_->Submitted(id);
  ++live_;
  for (const Group& group : cluster_.state().jobs().At(id).groups) {
    const TaskShape& shape = cluster_.state().interner().Shape(group.shape).shape;
    if (auto added = mix_.Come(shape, group.replicas); !added.ok()) return added;
  }
  return absl::OkStatus();
}

// The failure of a node is known at once, and the node comes back empty.
absl::Status World::Turn(NodeId id, bool up) {
  const Node& node = cluster_.state().nodes().At(id);
  if (up) {
    NodeRegistered back{.id = node.id, .spec = node.spec, .epoch = node.status.epoch + 1};
    back.agent_id = node.status.agent_id;
    back.boot_id = absl::StrCat("boot-", back.epoch);
    return cluster_.Happen(std::move(back));
  }
  const NodeFenced fenced{id};
  meter_->Before(fenced, cluster_.now());
  if (options_.progress != nullptr) {
    for (const TaskKey& task : node.tasks) options_.progress->Stopped(task.job);
  }
  if (auto status = cluster_.Happen(NodeSilenced{id}); !status.ok()) return status;
  return cluster_.Happen(fenced);
}

absl::Status World::TaskFails(const FaultAct& act) {
  TaskReported report;
  report.task = act.task;
  report.attempt = act.attempt;
  report.state = ReportState::kExited;
  report.exit_code = 1;
  meter_->Fails(act.task.job, &report, cluster_.now());
  options_.progress->Stopped(act.task.job);
  return cluster_.Happen(std::move(report));
}

absl::Status World::TaskHangs(const FaultAct& act) {
  meter_->Fails(act.task.job, nullptr, cluster_.now());
  return cluster_.Happen(TaskHung{.task = act.task, .attempt = act.attempt, .still = act.still});
}

absl::Status World::Do(const FaultAct& act) {
  using What = FaultAct::What;
  switch (act.what) {
    case What::kNodeStands:
      options_.progress->NodeStands(&cluster_, act.node, true);
      return absl::OkStatus();
    case What::kTaskStands:
      options_.progress->StandsStill(&cluster_, act.task.job);
      return absl::OkStatus();
    case What::kNodeDown:
      return Turn(act.node, false);
    case What::kTaskFails:
      return TaskFails(act);
    case What::kTaskHangs:
      return TaskHangs(act);
    case What::kNodeUp:
      options_.progress->NodeStands(&cluster_, act.node, false);
      return Turn(act.node, true);
  }
  return absl::OkStatus();
}

// A job has started once all its tasks have a place.
void World::Follow(const TasksBound& bound) {
  const Job& job = cluster_.state().jobs().At(bound.job);
  Outcome& outcome = run_.outcomes[meter_->IndexOf(bound.job)];
  if (options_.places) {
    outcome.last_start = Elapsed();
    outcome.places.resize(job.tasks.size());
    for (const Placement& place : bound.placements) {
      outcome.places[place.task] = {.any = true, .node = place.node, .devices = place.devices};
    }
  }
  const size_t members = static_cast<size_t>(TallyOf(job).Members()) + bound.placements.size();
  if (members < job.tasks.size()) return;
  outcome.first_start = std::min(outcome.first_start, Elapsed());
}

absl::Status World::Arrive() {
  for (; next_turn_ < turns_.size() && TimeOf(turns_[next_turn_].time) <= cluster_.now();
       ++next_turn_) {
    const NodeTurn& turn = turns_[next_turn_];
    const NodeId node = cluster_.state().FindNode(turn.node)->id;
    if (auto status = Turn(node, turn.up); !status.ok()) return status;
  }
  while (faults_.has_value()) {
    const std::optional<FaultAct> act = faults_->Take(cluster_.now());
    if (!act.has_value()) break;
    if (auto status = Do(*act); !status.ok()) return status;
  }
  const std::vector<TraceJob>& jobs = workload_.jobs;
  for (; next_job_ < jobs.size() && TimeOf(jobs[next_job_].submit) <= cluster_.now(); ++next_job_) {
    if (auto status = Submit(next_job_); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void World::KeepCheckpoint(const Job& job) {
  if (job.checkpoint_interval == absl::InfiniteDuration()) return;
  const Duration ran = cluster_.now() - job.status.start;
  Duration& kept = kept_[job.id];
  kept += absl::Floor(ran, job.checkpoint_interval);
  cluster_.SetRunTime(job.id, workload_.jobs[meter_->IndexOf(job.id)].run - kept);
}

void World::Follow(const EventBody& decision) {
  meter_->Before(decision, cluster_.now());
  if (options_.progress != nullptr) options_.progress->Decided(cluster_, decision);
  if (const auto* bound = std::get_if<TasksBound>(&decision)) Follow(*bound);
  const auto* changed = std::get_if<JobStatusChanged>(&decision);
  if (changed == nullptr) return;
  const Job& job = cluster_.state().jobs().At(changed->job);
  const bool restarts = changed->status.state == JobState::kRestarting;
  if (restarts && job.status.state == JobState::kRunning && options_.progress == nullptr) {
    KeepCheckpoint(job);
  }
  if (!Ended(changed->status.state)) return;
  run_.outcomes[meter_->IndexOf(changed->job)].end = Elapsed();
  cluster_.ForgetRunTime(changed->job);
  kept_.erase(changed->job);
  --live_;
}

absl::Status World::Settle() {
  for (int i = 0; i < kMaxCyclesAtOnce; ++i) {
    const auto plan = cluster_.Cycle([this](const EventBody& decision) { Follow(decision); });
    if (!plan.ok()) return plan.status();
    if (!cluster_.quiet()) continue;
    if (options_.progress != nullptr) options_.progress->Settled(&cluster_);
    return absl::OkStatus();
  }
  return absl::InternalError("the state still changes after very many cycles");
}

void World::AdvanceTo(Time when) {
  const Duration time = when - cluster_.now();
  meter_->Pass(absl::ToDoubleSeconds(time));
  cluster_.Advance(time);
}

Time World::NextArrival() const {
  Time next = absl::InfiniteFuture();
  if (next_job_ < workload_.jobs.size()) next = TimeOf(workload_.jobs[next_job_].submit);
  if (next_turn_ < turns_.size()) next = std::min(next, TimeOf(turns_[next_turn_].time));
  return next;
}

std::optional<Time> World::Next() const {
  const Time arrival = NextArrival();
  Time next = std::min(cluster_.NextDue(), arrival);
  // Nothing runs, nothing will arrive, no job waits for a time: pending jobs stay pending forever,
  // and faults change nothing.
  const ClusterState& state = cluster_.state();
  const bool over = !AnythingRuns(state) && state.timers().empty();
  const bool repairs = faults_.has_value() && faults_->Pending();
  if (over && arrival == absl::InfiniteFuture() && !repairs) return std::nullopt;
  if (faults_.has_value()) next = std::min(next, faults_->Next());
  if (next == absl::InfiniteFuture()) return std::nullopt;
  return next;
}

void World::NameTiers() {
  for (const Outcome& outcome : run_.outcomes) {
    if (outcome.tier == kNoTier) continue;
    std::string& name = run_.tiers[outcome.tier];
    if (name.empty()) name = TierName(cluster_.state(), outcome.tier);
  }
}

// Reports progress to the watch, and checks whether to stop.
bool World::Stopped() const {
  if (options_.watch == nullptr) return false;
  options_.watch->Progress(static_cast<int64_t>(next_job_ - live_),
                           static_cast<int64_t>(workload_.jobs.size()));
  return options_.watch->stopped();
}

absl::StatusOr<ReplayRun> World::Run() {
  const std::vector<TraceJob>& jobs = workload_.jobs;
  offset_ = jobs.empty() ? absl::ZeroDuration() : jobs.front().submit;
  while (next_job_ < jobs.size() || live_ > 0) {
    if (run_.interrupted = Stopped(); run_.interrupted) break;
    if (auto status = Arrive(); !status.ok()) return status;
    if (auto status = Settle(); !status.ok()) return status;
    const std::optional<Time> next = Next();
    if (!next.has_value()) break;
    AdvanceTo(*next);
  }
  meter_->Finish();
  NameTiers();
  const Interner& interner = cluster_.state().interner();
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    run_.resources.push_back(interner.KindName(ResourceKind{static_cast<uint8_t>(i)}));
  }
  run_.cycles = static_cast<int64_t>(cluster_.cycles());
  run_.mixes = mix_.given();
  if (faults_.has_value()) {
    run_.strikes = faults_->strikes();
    run_.interruptions = faults_->interruptions();
  }
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
