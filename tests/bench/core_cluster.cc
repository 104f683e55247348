#include "tests/bench/core_cluster.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "tests/bench/bench.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Machine {
  const char* model;
  int64_t gpu_memory_gib;
  int64_t cores;
  int64_t memory_gib;
};

// Blocks of 64 nodes: of eight blocks, four are H100, three A100, one H200.
constexpr Machine kA100{"A100", 80, 128, 1024};
constexpr Machine kH100{"H100", 80, 192, 2048};
constexpr Machine kH200{"H200", 141, 224, 2048};
constexpr int64_t kBlock = 64;

const Machine& MachineOf(int64_t node) {
  const int64_t block = node / kBlock % 8;
  return block < 4 ? kH100 : (block < 7 ? kA100 : kH200);
}

NodeSpec FleetNode(int64_t node, bool alike) {
  const Machine& machine = alike ? kH100 : MachineOf(node);
  NodeSpec spec;
  spec.name = absl::StrFormat("node-%06d", node);
  spec.address = absl::StrCat(spec.name, ".cluster.example:7443");
  spec.cpu_millis = machine.cores * 1000;
  spec.memory_bytes = machine.memory_gib << 30;
  for (int64_t gpu = 0; gpu < kGpusPerNode; ++gpu) {
    spec.devices.push_back({.kind = "gpu",
                            .uuid = absl::StrFormat("GPU-%08x-%04x", node, gpu),
                            .model = machine.model,
                            .memory_bytes = machine.gpu_memory_gib << 30,
                            .numa_node = static_cast<int32_t>(gpu / 4),
                            .pci_bus_id = absl::StrFormat("0000:%02x:00.0", 16 + gpu)});
  }
  spec.os = "linux";
  spec.architecture = "amd64";
  if (alike) return spec;
  spec.labels = {{"zone", absl::StrCat("z", node / 16 % 4)},
                 {"rack", absl::StrCat("r", node / 16)},
                 {"arch", "amd64"}};
  if (node / kBlock % 32 == 5) spec.taints = {{"dedicated", "inference"}};
  return spec;
}

// Sums over the tasks by node and queue.
struct Held {
  explicit Held(const ClusterState& state)
      : nodes(state.next_node_id().value),
        devices(state.next_node_id().value),
        queues(state.next_queue_id().value) {}
  std::vector<Resources> nodes;
  std::vector<DeviceSet> devices;
  std::vector<Resources> queues;
};

void AddJob(const ClusterState& state, const Job& job, Held* held) {
  int32_t placed = 0;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Occupies(task.state)) continue;
    ++placed;
    const Resources& request = state.interner().Shape(job.groups[GroupOf(job, i)].shape).resources;
    held->nodes[task.node.value] += request;
    if (held->devices[task.node.value].Overlaps(task.devices)) {
      Fail(absl::StrCat("a device of node ", task.node.value, " is allocated twice"));
    }
    held->devices[task.node.value] |= task.devices;
    for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
      held->queues[id.value] += request;
      if (id == kRootQueue) break;
    }
  }
  if (placed > 0 && placed < job.min_available) Fail("a gang is not whole: " + job.name);
}

}  // namespace

uint64_t Dice::Roll() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

void CoreCluster::Apply(EventBody body) {
  const absl::Status status = berth::Apply(state_, {now_, std::move(body)});
  if (!status.ok()) Fail(absl::StrCat("event not applied: ", status.message()));
}

void CoreCluster::AddNodes(int64_t count, bool alike) {
  const auto first = static_cast<int64_t>(state_.next_node_id().value);
  for (int64_t node = first; node < first + count; ++node) {
    Apply(NodeRegistered{.id = state_.next_node_id(),
                         .spec = FleetNode(node, alike),
                         .epoch = 1,
                         .agent_id = absl::StrCat("agent-", node),
                         .boot_id = absl::StrCat("boot-", node),
                         .agent_version = "1.0"});
  }
  (void)state_.TakeDirty();
}

void CoreCluster::HoldImages(uint64_t images) {
  state_.nodes().ForEach([&](NodeId id, const Node&) {
    Apply(NodeImagesChanged{.id = id, .gained = {ImageId{1 + id.value % images}}, .lost = {}});
  });
  (void)state_.TakeDirty();
}

HyperNodeId CoreCluster::AddDomain(HyperNodeSpec spec) {
  const HyperNodeId id = state_.next_hyper_node_id();
  Apply(HyperNodeChanged{.id = id, .spec = std::move(spec)});
  return id;
}

void CoreCluster::AddTree() {
  constexpr uint32_t kRack = 16;
  static constexpr struct {
    const char* name;
    size_t children;
  } kAbove[] = {{"pod", 16}, {"spine", 8}, {"hall", 4}};
  std::vector<std::string> below;
  for (uint32_t first = 1; first < state_.next_node_id().value; first += kRack) {
    const std::string name = absl::StrFormat("rack-%05d", below.size());
    const HyperNodeId id = AddDomain({.name = name, .tier = 1, .tier_name = "rack"});
    std::vector<NodeId> nodes;
    for (uint32_t n = first; n < std::min(first + kRack, state_.next_node_id().value); ++n) {
      nodes.push_back(NodeId{n});
    }
    Apply(NodesJoined{.domain = id, .nodes = std::move(nodes)});
    below.push_back(name);
  }
  int32_t tier = 1;
  for (const auto& level : kAbove) {
    ++tier;
    std::vector<std::string> made;
    for (size_t first = 0; first < below.size(); first += level.children) {
      HyperNodeSpec spec{.name = absl::StrFormat("%s-%03d", level.name, made.size()),
                         .tier = tier,
                         .tier_name = level.name};
      for (size_t c = first; c < std::min(first + level.children, below.size()); ++c) {
        spec.members.push_back({.type = HyperNodeMember::Type::kHyperNode, .text = below[c]});
      }
      made.push_back(spec.name);
      AddDomain(std::move(spec));
    }
    below = std::move(made);
  }
  (void)state_.TakeDirty();
}

QueueId CoreCluster::AddQueue(QueueSpec spec) {
  const QueueId id = state_.next_queue_id();
  Apply(QueueCreated{.id = id, .spec = std::move(spec)});
  return id;
}

JobId CoreCluster::Submit(JobSpec spec) {
  const JobId id = state_.next_job_id();
  Apply(JobSubmitted{.id = id, .spec = std::move(spec)});
  return id;
}

TimedPlan CoreCluster::PlanTimed(uint64_t budget) {
  const auto begin = Clock::now();
  TimedPlan timed{PlanAndAdopt(state_, policies_, now_, budget), 0};
  timed.seconds = SecondsSince(begin);
  return timed;
}

double CoreCluster::ApplyTimed(const Plan& plan) {
  if (plan.applied) {
    (void)state_.TakeDirty();
    return 0;
  }
  std::vector<Event> events;
  events.reserve(plan.decisions.size());
  for (const EventBody& decision : plan.decisions) events.push_back({now_, decision});
  const auto begin = Clock::now();
  for (const Event& event : events) {
    const absl::Status status = berth::Apply(state_, event);
    if (!status.ok()) Fail(absl::StrCat("decision not applied: ", status.message()));
  }
  const double seconds = SecondsSince(begin);
  (void)state_.TakeDirty();
  return seconds;
}

void CoreCluster::Settle() {
  constexpr int kMostCycles = 10'000;
  for (int cycle = 0; cycle < kMostCycles; ++cycle) {
    const Plan plan = PlanAndAdopt(state_, policies_, now_, kNoBudget);
    if (plan.decisions.empty()) return;
    ApplyTimed(plan);
  }
  Fail("planning does not come to rest");
}

// Bound tasks run, released ones have been killed.
void CoreCluster::AddReports(JobId id, const Job& job, std::vector<TaskReported>* reports) {
  for (uint32_t i = 0; job.occupying > 0 && i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    TaskReported report{.task = {id, i}, .attempt = task.attempt};
    if (task.state == TaskState::kReleasing) {
      report.state = ReportState::kExited;
      report.exit_code = 143;
      report.cause = ExitCause::kKilled;
    } else if (task.state != TaskState::kBound) {
      continue;
    }
    reports->push_back(report);
  }
}

bool CoreCluster::Send(const std::vector<TaskReported>& reports) {
  for (const TaskReported& report : reports) Apply(report);
  (void)state_.TakeDirty();
  return !reports.empty();
}

// Returns whether there was anything to report.
bool CoreCluster::ReportAll() {
  std::vector<TaskReported> reports;
  state_.jobs().ForEach([&](JobId id, const Job& job) { AddReports(id, job, &reports); });
  return Send(reports);
}

bool CoreCluster::ReportOf(JobId id) {
  std::vector<TaskReported> reports;
  AddReports(id, state_.jobs().At(id), &reports);
  return Send(reports);
}

void CoreCluster::RunAll() {
  do {
    Settle();
  } while (ReportAll());
}

void CoreCluster::Report(JobId id, TaskState in, ReportState what) {
  const auto tasks = static_cast<uint32_t>(state_.jobs().At(id).tasks.size());
  for (uint32_t i = 0; i < tasks; ++i) {
    const Task& task = state_.jobs().At(id).tasks[i];
    if (task.state != in) continue;
    Apply(TaskReported{.task = {id, i}, .attempt = task.attempt, .state = what});
  }
}

void CoreCluster::EndTasks(JobId id) {
  Report(id, TaskState::kRunning, ReportState::kExited);
  (void)state_.TakeDirty();
}

void CoreCluster::Finish(JobId id) {
  EndTasks(id);
  Settle();
}

void CoreCluster::FinishAll() {
  std::vector<JobId> running;
  state_.jobs().ForEach([&](JobId id, const Job& job) {
    if (job.occupying > 0) running.push_back(id);
  });
  for (JobId id : running) Report(id, TaskState::kRunning, ReportState::kExited);
  (void)state_.TakeDirty();
}

void CoreCluster::CordonAll(bool cordoned) {
  for (uint32_t node = 1; node < state_.next_node_id().value; ++node) {
    Apply(NodeSteered{.id = NodeId{node}, .cordoned = cordoned});
  }
  (void)state_.TakeDirty();
}

void CoreCluster::RunThrough() {
  constexpr int kMostRounds = 1000;
  for (int round = 0; round < kMostRounds && state_.pending().job_count() > 0; ++round) {
    RunAll();
    FinishAll();
    Advance(absl::Minutes(10));
  }
  for (int last = 0; last < 2; ++last) {  // the jobs end and are then deleted
    RunAll();
    Advance(absl::Minutes(10));
  }
  RunAll();
  if (state_.jobs().size() != 0) Fail("some jobs never ended");
}

void CoreCluster::Check() const {
  Held held(state_);
  state_.jobs().ForEach([&](JobId, const Job& job) { AddJob(state_, job, &held); });
  state_.nodes().ForEach([&](NodeId id, const Node& node) {
    const DeviceSet& devices = held.devices[id.value];
    if (!held.nodes[id.value].FitsIn(node.capacity) ||
        !(Intersection(devices, node.healthy) == devices)) {
      Fail("over the capacity of node " + node.spec.name);
    }
  });
  state_.queues().ForEach([&](QueueId id, const Queue& queue) {
    if (!held.queues[id.value].FitsIn(queue.limit)) Fail("limit exceeded: " + queue.spec.name);
  });
  const absl::Status status = CheckConsistency(state_);
  if (!status.ok()) Fail(std::string(status.message()));
}

int64_t CoreCluster::GpusHeld() const {
  int64_t held = 0;
  state_.nodes().ForEach(
      [&](NodeId, const Node& node) { held += node.devices_used.InUse().Count(); });
  return held;
}

int64_t CoreCluster::Gpus() const {
  return static_cast<int64_t>(state_.nodes().size()) * kGpusPerNode;
}

double CoreCluster::StateDigest() const {
  return static_cast<double>(Fingerprint(state_) & ((uint64_t{1} << 48) - 1));
}

std::vector<QueueId> AddTeams(CoreCluster& cluster, int64_t deserved) {
  constexpr int kDepartments = 8, kTeams = 4;
  std::vector<QueueId> teams;
  for (int d = 0; d < kDepartments; ++d) {
    QueueSpec department{.name = absl::StrCat("department-", d), .weight = 1 + d % 4};
    const QueueId parent = cluster.AddQueue(std::move(department));
    for (int t = 0; t < kTeams; ++t) {
      QueueSpec team{.name = absl::StrCat("team-", d, "-", t), .parent = parent};
      team.deserved = {{"gpu", deserved * kWhole}};
      team.weight = 1 + t % 2;
      if (t % 2 == 1) team.user_fairness = UserFairness::kDrf;
      if (teams.size() % 8 == 7) team.limit = {{"gpu", 6 * deserved * kWhole}};
      teams.push_back(cluster.AddQueue(std::move(team)));
    }
  }
  return teams;
}

Workload::Workload(std::vector<QueueId> queues, uint64_t seed, int kinds) : dice_(seed) {
  constexpr int kUsers = 6;
  for (int user = 0; user < kUsers; ++user) {
    for (size_t q = 0; q < queues.size(); ++q) {
      for (int kind = 0; kind < kinds; ++kind) {
        habits_.push_back(MakeHabit(queues[q], absl::StrCat("user-", q, "-", user)));
      }
    }
  }
}

Workload::Habit Workload::MakeHabit(QueueId queue, const std::string& user) {
  static constexpr int64_t kHours[] = {1, 4, 24};
  Habit habit{.queue = queue, .user = user, .group = {.name = "main"}, .walltime = {}};
  const size_t size = dice_.Below(20);  // 9 of 20 use 1 GPU, 5 use 2, 4 use 4, 2 use 8
  const int32_t gpus = size < 9 ? 1 : (size < 14 ? 2 : (size < 18 ? 4 : 8));
  TaskShape& shape = habit.group.shape;
  shape.devices = {{.kind = "gpu", .count = gpus}};
  shape.cpu_millis = gpus * (8'000 + 2'000 * static_cast<int64_t>(dice_.Below(3)));
  shape.memory_bytes = gpus * (64 + 32 * static_cast<int64_t>(dice_.Below(2))) << 30;
  const size_t model = dice_.Below(100);
  if (model < 35) {
    shape.devices[0].models = {"H100", "H200"};
  } else if (model < 45) {
    shape.devices[0].models = {"A100", "H100"};
  } else if (model < 50) {
    shape.devices[0].models = {"H200"};
  }
  if (dice_.Percent(10)) shape.match_labels = {{"zone", absl::StrCat("z", dice_.Below(4))}};
  if (dice_.Percent(20)) shape.tolerations = {{"dedicated", "inference"}};
  habit.priority = static_cast<int32_t>(dice_.Below(3)) * 10;
  habit.preemptible = dice_.Percent(80);
  habit.walltime =
      dice_.Percent(25) ? absl::InfiniteDuration() : absl::Hours(kHours[dice_.Below(3)]);
  return habit;
}

JobSpec Workload::Next() {
  const size_t a = dice_.Below(habits_.size()), b = dice_.Below(habits_.size());
  const Habit& habit = habits_[std::min(a, b)];  // lower indices are more frequent
  JobSpec spec{.name = absl::StrCat("job-", submitted_++), .queue = habit.queue};
  spec.priority = habit.priority;
  spec.min_available = 1;
  spec.groups = {habit.group};
  spec.user = habit.user;
  spec.preemptible = habit.preemptible;
  spec.walltime = habit.walltime;
  spec.checkpoint_interval = absl::Minutes(30);
  spec.ttl_after_finished = absl::Minutes(5);
  return spec;
}

int64_t Workload::SubmitGpus(CoreCluster& cluster, int64_t gpus) {
  int64_t jobs = 0;
  for (int64_t asked = 0; asked < gpus; ++jobs) {
    JobSpec spec = Next();
    asked += spec.groups[0].shape.devices[0].count;
    cluster.Submit(std::move(spec));
  }
  return jobs;
}

JobSpec WholeNodeGang(std::string name, QueueId queue, int32_t nodes) {
  JobSpec spec{.name = std::move(name), .queue = queue};
  spec.min_available = nodes;
  GroupSpec group{.name = "worker", .replicas = nodes, .min_available = nodes};
  group.shape.cpu_millis = 96'000;
  group.shape.memory_bytes = int64_t{512} << 30;
  group.shape.devices = {
      {.kind = "gpu", .count = static_cast<int32_t>(kGpusPerNode), .models = {"H100", "H200"}}};
  spec.groups = {std::move(group)};
  spec.user = "trainer";
  spec.walltime = absl::Hours(48);
  return spec;
}

}  // namespace berth::bench
