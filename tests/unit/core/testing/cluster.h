// Sets up clusters in a few lines: everything goes through Apply, as in the server.
//
//   TestCluster cluster;
//   cluster.AddNodes("n", 4, {.gpus = 8});
//   cluster.AddQueue("a", {.limit = {{"gpu", 16}}});
//   JobId job = cluster.Submit("j", {.queue = "a", .groups = {{.replicas = 2, .gpus = 8}}});
//   cluster.Cycle();
//   CHECK(cluster.Where(job) == "n1 n2");
//
// Names are chosen so that expectations read as text. Header only. Time advances only on request.
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_CLUSTER_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_CLUSTER_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/apply.h"
#include "core/model/cluster_state.h"
#include "core/model/image_id.h"

// Designated initialisers are used; omitted fields are meant to be empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::testing {

struct NodeShape {
  int64_t cpu = 64;  // cores
  int64_t memory_gib = 512;
  int gpus = 0;
  int tasks_per_gpu = 1;
  int oversubscription = 100;
  int compute_capability = 0;
  std::string model = "H100";
  int64_t gpu_memory_gib = 80;
  std::map<std::string, std::string> labels = {};
  std::vector<Taint> taints = {};
  std::vector<NamedAmount> extended = {};
  bool freezes = true;
  bool checkpoints_devices = true;
};

struct QueueShape {
  std::string parent = "";  // the root
  std::vector<NamedAmount> limit = {};
  int max_jobs = 0;
  int max_running_jobs = 0;
  std::vector<NamedAmount> deserved = {};
  std::vector<NamedAmount> guarantee = {};
  int weight = 1;
  int priority = 0;
  bool reclaimable = true;
  QueueOrder order = QueueOrder::kFifoSkip;
  UserFairness user_fairness = UserFairness::kNone;
  Strategy strategy = Strategy::kDefault;
  int max_tasks = 0;
  Duration slice = absl::ZeroDuration();
};

struct GroupShape {
  std::string name = "w";
  int replicas = 1;
  int min_available = -1;  // -1: replicas
  int64_t cpu = 1;
  int64_t memory_gib = 0;
  int gpus = 0;
  int share = 0;          // thousandths of one GPU, instead of gpus
  int64_t share_gib = 0;  // this much memory of one GPU; `share` is what it counts as
  bool oversubscribe = false;
  int min_compute_capability = 0;
  std::vector<std::string> models = {};
  std::map<std::string, std::string> match_labels = {};
  std::vector<std::string> exclude_nodes = {};
  std::vector<Toleration> tolerations = {};
  std::vector<LifecyclePolicy> policies = {};
  std::vector<GroupDependency> depends_on = {};
  Strategy strategy = Strategy::kDefault;
  int partition_size = 0;
  std::vector<uint32_t> near_groups = {};
  std::vector<uint32_t> apart_from = {};
  GangMembership membership = GangMembership::kDefault;
  bool coordinator = false;
  int spare_of = -1;  // a group
  std::string image = "";
};

struct JobShape {
  std::string queue = "";  // "default"
  int priority = 0;
  std::vector<GroupShape> groups = {GroupShape{}};
  int min_available = -1;  // -1: sum over the groups
  std::vector<LifecyclePolicy> policies = {};
  std::vector<JobDependency> dependencies = {};
  int max_retries = 0;
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  bool suspended = false;
  Duration walltime = absl::InfiniteDuration();
  Duration checkpoint_interval = absl::InfiniteDuration();
  Duration walltime_notice = absl::ZeroDuration();
  bool saves_before_drain = false;
  bool may_migrate = false;
  std::vector<int32_t> saved_exit_codes = {};
  Duration watchdog = absl::InfiniteDuration();
  Duration dump_wait = absl::ZeroDuration();
  Duration kill_grace = absl::Seconds(10);
  Duration ttl = absl::InfiniteDuration();
  Time start_after = absl::InfinitePast();
  bool preemptible = false;
  PreemptMode preempt_mode = PreemptMode::kRequeue;
  std::string user = "";
  Time deadline = absl::InfiniteFuture();
  Strategy strategy = Strategy::kDefault;
  bool checkpoints_devices = false;
  int min_success = 0;
  Duration run_limit = absl::InfiniteDuration();
  Boxed<SeriesSpec> series = {};
};

// Test amounts are in cpu millis, bytes, devices.
inline std::vector<NamedAmount> InThousandths(std::vector<NamedAmount> amounts) {
  for (NamedAmount& one : amounts) one.amount *= UnitOf(one.name);
  return amounts;
}

inline NodeSpec MakeNode(const std::string& name, const NodeShape& shape) {
  NodeSpec spec{.name = name, .address = name};
  spec.cpu_millis = shape.cpu * 1000;
  spec.memory_bytes = shape.memory_gib << 30;
  for (int i = 0; i < shape.gpus; ++i) {
    spec.devices.push_back({.kind = "gpu",
                            .uuid = absl::StrCat(name, "-gpu-", i),
                            .model = shape.model,
                            .memory_bytes = shape.gpu_memory_gib << 30,
                            .pci_bus_id = absl::StrFormat("0000:%02x:00.0", i),
                            .max_tasks = shape.tasks_per_gpu,
                            .oversubscription = shape.oversubscription,
                            .compute_capability = shape.compute_capability});
  }
  spec.freezes = shape.freezes;
  spec.checkpoints_devices = shape.checkpoints_devices;
  spec.labels = shape.labels;
  spec.taints = shape.taints;
  spec.extended = InThousandths(shape.extended);
  return spec;
}

inline GroupSpec MakeGroup(const GroupShape& shape) {
  GroupSpec group{.name = shape.name, .replicas = shape.replicas};
  group.min_available = shape.min_available < 0 ? shape.replicas : shape.min_available;
  group.shape.cpu_millis = shape.cpu * 1000;
  group.shape.memory_bytes = shape.memory_gib << 30;
  if (shape.gpus > 0) {
    group.shape.devices = {{.kind = "gpu", .count = shape.gpus, .models = shape.models}};
  }
  if (shape.share > 0) {
    group.shape.devices = {
        {.kind = "gpu", .count = 1, .share = shape.share, .models = shape.models}};
    DeviceRequest& request = group.shape.devices[0];
    request.by_memory = shape.share_gib > 0;
    request.min_memory_bytes = shape.share_gib << 30;
    request.oversubscribe = shape.oversubscribe;
  }
  for (DeviceRequest& request : group.shape.devices) {
    request.min_compute_capability = shape.min_compute_capability;
  }
  group.shape.match_labels = shape.match_labels;
  group.shape.exclude_nodes = shape.exclude_nodes;
  group.shape.tolerations = shape.tolerations;
  group.policies = shape.policies;
  group.depends_on = shape.depends_on;
  group.strategy = shape.strategy;
  group.partition_size = shape.partition_size;
  group.near_groups = shape.near_groups;
  group.apart_from = shape.apart_from;
  group.membership = shape.membership;
  group.coordinator = shape.coordinator;
  group.has_image = !shape.image.empty();
  group.image = ImageIdOf(shape.image);
  if (shape.spare_of >= 0) {
    group.spare_of = static_cast<uint32_t>(shape.spare_of);
    group.min_available = 0;
  }
  return group;
}

inline JobSpec MakeJob(const std::string& name, QueueId queue, const JobShape& shape) {
  JobSpec spec{.name = name, .queue = queue, .priority = shape.priority};
  int32_t minimum = 0;
  for (const GroupShape& group : shape.groups) {
    spec.groups.push_back(MakeGroup(group));
    minimum += spec.groups.back().min_available;
  }
  spec.min_available = shape.min_available < 0 ? minimum : shape.min_available;
  spec.policies = shape.policies;
  spec.dependencies = shape.dependencies;
  spec.max_retries = shape.max_retries;
  spec.on_node_loss = shape.on_node_loss;
  spec.suspended = shape.suspended;
  spec.walltime = shape.walltime;
  spec.walltime_notice = shape.walltime_notice;
  spec.saves_before_drain = shape.saves_before_drain;
  spec.may_migrate = shape.may_migrate;
  spec.saved_exit_codes = shape.saved_exit_codes;
  spec.watchdog = shape.watchdog;
  spec.dump_wait = shape.dump_wait;
  spec.checkpoint_interval = shape.checkpoint_interval;
  spec.kill_grace = shape.kill_grace;
  spec.ttl_after_finished = shape.ttl;
  spec.start_after = shape.start_after;
  spec.preemptible = shape.preemptible;
  spec.preempt_mode = shape.preempt_mode;
  spec.user = shape.user;
  spec.deadline = shape.deadline;
  spec.strategy = shape.strategy;
  spec.checkpoints_devices = shape.checkpoints_devices;
  spec.min_success = shape.min_success;
  spec.run_limit = shape.run_limit;
  spec.series = shape.series;
  return spec;
}

inline Policies PoliciesWith(std::vector<std::string> actions) {
  PolicyConfig config;
  config.actions = std::move(actions);
  return *Policies::Create(config);
}

class TestCluster {
 public:
  TestCluster() : TestCluster(PoliciesWith({"allocate"})) {}
  explicit TestCluster(Policies policies) : policies_(std::move(policies)) {}

  NodeId AddNode(const std::string& name, const NodeShape& shape = {}) {
    const NodeId id = state_.next_node_id();
    Must(NodeRegistered{.id = id, .spec = MakeNode(name, shape), .epoch = 1, .agent_id = name});
    return id;
  }
  // "n1", "n2", ...
  void AddNodes(const std::string& prefix, int count, const NodeShape& shape = {}) {
    for (int i = 1; i <= count; ++i) AddNode(absl::StrCat(prefix, i), shape);
  }
  QueueId AddQueue(const std::string& name, const QueueShape& shape = {}) {
    QueueSpec spec{.name = name, .limit = InThousandths(shape.limit), .max_jobs = shape.max_jobs};
    spec.max_running_jobs = shape.max_running_jobs;
    spec.max_tasks = shape.max_tasks;
    spec.deserved = InThousandths(shape.deserved);
    spec.guarantee = InThousandths(shape.guarantee);
    spec.weight = shape.weight;
    spec.priority = shape.priority;
    spec.reclaimable = shape.reclaimable;
    spec.order = shape.order;
    spec.user_fairness = shape.user_fairness;
    spec.strategy = shape.strategy;
    spec.slice = shape.slice;
    if (!shape.parent.empty()) spec.parent = state_.FindQueue(shape.parent)->id;
    const QueueId id = state_.next_queue_id();
    Must(QueueCreated{.id = id, .spec = std::move(spec)});
    return id;
  }
  // Creates the queue "default" when a job names none.
  JobId Submit(const std::string& name, const JobShape& shape = {}) {
    const std::string queue_name = shape.queue.empty() ? "default" : shape.queue;
    const Queue* queue = state_.FindQueue(queue_name);
    const QueueId leaf = queue != nullptr ? queue->id : AddQueue(queue_name);
    const JobId id = state_.next_job_id();
    Must(JobSubmitted{.id = id, .spec = MakeJob(name, leaf, shape)});
    return id;
  }

  // These nodes hold the image, besides those that did.
  void Hold(const std::string& image, const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      Must(NodeImagesChanged{.id = node_id(node), .gained = {ImageIdOf(image)}, .lost = {}});
    }
  }

  // Applies the event now; the test fails if it is rejected.
  void Must(EventBody body) {
    const absl::Status status = Try(std::move(body));
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  absl::Status Try(EventBody body) { return Apply(state_, {now_, std::move(body)}); }

  // One PlanCycle whose decisions are applied. In debug builds PlanCycle itself checks for small
  // states that planning left no trace.
  Plan Cycle(uint64_t budget = kNoBudget) {
    Plan plan = adopts_ ? PlanAndAdopt(state_, policies_, now_, budget)
                        : PlanCycle(state_, policies_, now_, budget);
    for (const EventBody& decision : plan.decisions) {
      if (!plan.applied) Must(decision);
    }
    return plan;
  }
  // From now on cycles use PlanAndAdopt.
  void Adopt() { adopts_ = true; }
  // Runs cycles until there are no more decisions; returns all of them.
  std::vector<EventBody> Settle(uint64_t budget = kNoBudget) {
    std::vector<EventBody> all;
    for (int i = 0; i < 100'000; ++i) {
      Plan plan = Cycle(budget);
      if (plan.decisions.empty() && !plan.exhausted) return all;
      std::move(plan.decisions.begin(), plan.decisions.end(), std::back_inserter(all));
    }
    FAIL("cycles do not end");
    return all;
  }
  // Advances the time, then runs cycles.
  void Advance(Duration duration) {
    now_ += duration;
    Settle();
  }

  // The same without cycles.
  void PassTo(Time now) { now_ = now; }

  // A report of the agent about the task's current attempt.
  void Report(JobId id, uint32_t task, ReportState what, int exit_code = 0,
              ExitCause cause = ExitCause::kItself) {
    Must(TaskReported{.task = {id, task},
                      .attempt = job(id).tasks[task].attempt,
                      .state = what,
                      .exit_code = exit_code,
                      .cause = cause});
  }
  // Reports `what` for every task of the job in state `in`, then runs cycles.
  void ReportAll(JobId id, TaskState in, ReportState what, int exit_code = 0) {
    for (uint32_t i = 0; i < job(id).tasks.size(); ++i) {
      if (job(id).tasks[i].state == in) Report(id, i, what, exit_code);
    }
    Settle();
  }
  void PrepareAll(JobId id) { ReportAll(id, TaskState::kBound, ReportState::kPrepared); }
  // Takes a pending job to Running: bound, prepared, started.
  void RunAll(JobId id) {
    Settle();
    PrepareAll(id);
    ReportAll(id, TaskState::kStarting, ReportState::kRunning);
  }
  // Reports tasks being released as gone.
  void GoneAll(JobId id) { ReportAll(id, TaskState::kReleasing, ReportState::kExited, 143); }
  // Then runs cycles.
  void Exit(JobId id, uint32_t task, int exit_code = 0) {
    Report(id, task, ReportState::kExited, exit_code);
    Settle();
  }

  // "n1 n2 -": the node of each task that occupies one, "-" for others.
  std::string Where(JobId id) const {
    std::string where;
    for (const Task& task : job(id).tasks) {
      absl::StrAppend(&where, where.empty() ? "" : " ",
                      Occupies(task.state) ? state_.nodes().At(task.node).spec.name : "-");
    }
    return where;
  }
  std::string StateOf(JobId id) const {
    static constexpr const char* kNames[] = {"Pending",    "Held",      "Binding",    "Running",
                                             "Restarting", "Suspended", "Completing", "Succeeded",
                                             "Failed",     "Cancelled"};
    const Job* found = state_.jobs().Find(id);
    return found == nullptr ? "gone" : kNames[static_cast<size_t>(found->status.state)];
  }
  // One letter a task: '.' pending, Bound, Prepared, Starting, Running, Leaving (releasing),
  // '?' lost, 'o' succeeded, 'x' failed.
  std::string Tasks(JobId id) const {
    std::string letters;
    for (const Task& task : job(id).tasks) letters += "..BPSRL?ox"[static_cast<size_t>(task.state)];
    return letters;
  }
  std::vector<WaitReason> Why(JobId id) const { return WhyWaiting(state_, job(id), now_); }

  const Job& job(JobId id) const { return state_.jobs().At(id); }
  const JobStatus& status(JobId id) const { return job(id).status; }
  const Node& node(const std::string& name) const { return *state_.FindNode(name); }
  NodeId node_id(const std::string& name) const { return node(name).id; }
  QueueId queue_id(const std::string& name) const { return state_.FindQueue(name)->id; }
  ClusterState& state() { return state_; }
  const ClusterState& state() const { return state_; }
  const Policies& policies() const { return policies_; }
  Time now() const { return now_; }

  static constexpr uint64_t kNoBudget = uint64_t{1} << 40;

 private:
  ClusterState state_;
  Policies policies_;
  bool adopts_ = false;
  Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// One line for each decision, with names: "bind j: 0@n1 1@n2", "release j: 0 1". Devices as bits.
inline std::string Describe(const ClusterState& state, const EventBody& decision) {
  const auto name = [&](JobId id) { return state.jobs().At(id).name; };
  if (const auto* bound = std::get_if<TasksBound>(&decision)) {
    std::string line = absl::StrCat(bound->gang ? "gang " : "bind ", name(bound->job), ":");
    for (const Placement& p : bound->placements) {
      absl::StrAppend(&line, " ", p.task, "@", state.nodes().At(p.node).spec.name);
      if (!p.devices.Empty()) absl::StrAppend(&line, "/", absl::Hex(p.devices.bits[0]));
    }
    return line;
  }
  const auto places = [&](const std::vector<Placement>& placements) {
    std::string text;
    for (const Placement& p : placements) {
      absl::StrAppend(&text, " ", p.task, "@", state.nodes().At(p.node).spec.name);
    }
    return text;
  };
  if (const auto* nominated = std::get_if<TasksNominated>(&decision)) {
    return absl::StrCat("nominate ", name(nominated->job), ":", places(nominated->placements));
  }
  const auto tasks = [&](const char* what, const auto& event) {
    return absl::StrCat(what, name(event.job), ": ", absl::StrJoin(event.tasks, " "));
  };
  if (const auto* started = std::get_if<TasksStarted>(&decision)) return tasks("start ", *started);
  if (const auto* released = std::get_if<TasksReleased>(&decision)) {
    const std::string line = tasks("release ", *released);
    if (!IsEviction(released->reason)) return line;
    return absl::StrCat(line, " for ", name(released->beneficiary),
                        released->moves_to.empty() ? "" : " to", places(released->moves_to));
  }
  if (const auto* requeued = std::get_if<TasksRequeued>(&decision)) {
    return tasks("requeue ", *requeued);
  }
  if (const auto* changed = std::get_if<JobStatusChanged>(&decision)) {
    return absl::StrCat("status ", name(changed->job), ": ",
                        static_cast<int>(changed->status.state), " ", changed->status.message);
  }
  if (const auto* refused = std::get_if<NodeRefused>(&decision)) {
    return absl::StrCat("refused ", state.nodes().At(refused->id).spec.name);
  }
  if (const auto* steered = std::get_if<NodeSteered>(&decision)) {
    return absl::StrCat("steer ", state.nodes().At(steered->id).spec.name);
  }
  return absl::StrCat("event ", decision.index());
}

inline std::string Describe(const ClusterState& state, const std::vector<EventBody>& decisions) {
  std::string text;
  for (const EventBody& decision : decisions)
    absl::StrAppend(&text, Describe(state, decision), "\n");
  return text;
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_CLUSTER_H_
