// Properties of planning on random small clusters. Seeds are fixed: a failure repeats.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/engine/search/node_search.h"
#include "core/engine/transaction.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/property/random_jobs.h"
#include "tests/property/ranks.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::TestCluster;

void TakesAtMost(TestCluster& cluster, const std::string& name, int32_t tasks) {
  const Node& node = cluster.node(name);
  NodeSpec spec = node.spec;
  spec.max_tasks = tasks;
  cluster.Must(NodeRegistered{
      .id = node.id, .spec = std::move(spec), .epoch = node.status.epoch + 1, .agent_id = name});
}

void AddRandomNodes(TestCluster& cluster, Dice& dice, int most) {
  const int count = dice.Between(1, most);
  for (int i = 0; i < count; ++i) {
    cluster.AddNode(absl::StrCat("n", i),
                    {.cpu = dice.Between(2, 16),
                     .memory_gib = dice.Between(4, 32),
                     .gpus = dice.Between(0, 4),
                     .tasks_per_gpu = dice.Chance(30) ? 1 : dice.Between(2, 6),
                     .oversubscription = dice.Chance(50) ? 100 : 100 * dice.Between(1, 3),
                     .model = dice.Chance(50) ? "H100" : "A100",
                     .gpu_memory_gib = dice.Chance(50) ? 80 : 40});
    if (dice.Chance(30)) TakesAtMost(cluster, absl::StrCat("n", i), dice.Between(1, 4));
  }
}

GroupShape RandomGroup(Dice& dice, int most) {
  GroupShape group{.replicas = dice.Between(1, most), .cpu = dice.Between(0, 4)};
  group.memory_gib = dice.Between(0, 6);
  group.gpus = dice.Chance(70) ? dice.Between(0, 3) : 0;
  if (dice.Chance(25)) {
    group.gpus = 0;
    group.share = 50 * dice.Between(1, 19);
    if (dice.Chance(30)) group.share_gib = dice.Between(1, 50);
    group.oversubscribe = group.share_gib == 0 && dice.Chance(40);
  }
  if (group.gpus + group.share > 0 && dice.Chance(25)) group.models = {"H100"};
  return group;
}

void AddRandomQueues(TestCluster& cluster, Dice& dice) {
  cluster.AddQueue("org",
                   {.limit = {{"cpu", dice.Between(4, 40) * 1000}, {"gpu", dice.Between(1, 12)}},
                    .max_running_jobs = dice.Chance(30) ? 3 : 0});
  cluster.AddQueue("a", {.parent = "org", .limit = {{"gpu", dice.Between(1, 8)}}});
  cluster.AddQueue("b", {.parent = "org", .max_running_jobs = dice.Chance(30) ? 2 : 0});
  cluster.AddQueue("c");
}

// ---- Invariants of every state, computed from tasks alone

Resources Each(const ClusterState& state, const Job& job, uint32_t task) {
  return state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources;
}

// What its tasks may use: also devices that have failed or are drained since.
Resources MayUse(const ClusterState& state, const Node& node) {
  Resources all = node.capacity;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (Unusable(node, i)) all[*state.interner().FindKind(node.spec.devices[i].kind)] += kWhole;
  }
  return all;
}

void CheckNoDoubleBooking(const ClusterState& state) {
  std::map<NodeId, Resources> used;
  std::map<NodeId, std::map<size_t, int64_t>> devices;  // thousandths in use
  std::map<NodeId, std::map<size_t, int>> tasks_on;
  state.jobs().ForEach([&](JobId, const Job& job) {
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      const Task& task = job.tasks[i];
      if (!Occupies(task.state)) continue;
      const Node& node = state.nodes().At(task.node);
      const std::vector<Device>& there = node.spec.devices;
      const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, i)].shape);
      used[task.node] += HeldBy(shape, UseOf(node, shape, DevicesHeld(task)), Frozen(task));
      for (size_t d = 0; d < there.size(); ++d) {
        if (!DevicesHeld(task).Has(d)) continue;
        const int64_t takes =
            shape.share > 0 ? ShareOn(there[d], shape.shape.devices[shape.share_at]) : kWhole;
        REQUIRE((devices[task.node][d] += takes) <= kWhole);
        REQUIRE(++tasks_on[task.node][d] <= there[d].max_tasks);
      }
    }
  });
  for (const auto& [id, sum] : used) REQUIRE(sum.FitsIn(MayUse(state, state.nodes().At(id))));
  state.nodes().ForEach([](NodeId, const Node& node) {
    const auto tasks = static_cast<int64_t>(node.tasks.size());
    const auto to_come = static_cast<int64_t>(node.nominated.size());
    REQUIRE(tasks <= TaskRoomIfEmpty(node));
    REQUIRE(tasks - node.leaving_tasks + to_come <= TaskRoomIfEmpty(node));
  });
}

void CheckLimits(const ClusterState& state) {
  std::map<QueueId, Resources> used;
  std::map<QueueId, int> running;
  state.jobs().ForEach([&](JobId, const Job& job) {
    Resources sum;
    bool holds = false;
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      if (!Occupies(job.tasks[i].state)) continue;
      sum += Each(state, job, i);
      holds = true;
    }
    for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
      used[id] += sum;
      running[id] += holds ? 1 : 0;
      if (id == kRootQueue) break;
    }
  });
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    REQUIRE(used[id].FitsIn(queue.limit));
    const int bound = queue.spec.max_running_jobs;
    if (bound > 0) REQUIRE(running[id] <= bound);
  });
}

// Members that hold a place and will keep it.
int Members(const Job& job, uint32_t group) { return job.tallies[group].Members(); }

void CheckGangs(const ClusterState& state) {
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (job.status.state == JobState::kPending || job.status.state == JobState::kHeld) {
      REQUIRE(job.occupying == 0);
    }
    // A job that awaits the lifecycle stage may be in any state; policies may restart parts of
    // a job (its message says so); late groups start independently.
    if (job.status.state != JobState::kBinding || !job.status.message.empty()) return;
    if (state.unsettled().contains(id)) return;
    int all = 0;
    bool chained = false;
    for (uint32_t g = 0; g < job.groups.size(); ++g) {
      const int present = Members(job, g) + job.tallies[g].In(TaskState::kSucceeded) +
                          job.tallies[g].In(TaskState::kFailed);
      all += present;
      chained |= !job.groups[g].depends_on.empty();
      if (job.groups[g].depends_on.empty()) REQUIRE(present >= job.groups[g].min_available);
    }
    if (!chained) REQUIRE(all >= job.min_available);
  });
}

void CheckState(const ClusterState& state) {
  CheckNoDoubleBooking(state);
  CheckLimits(state);
  CheckGangs(state);
  REQUIRE(RanksAreUnique(state));
  const absl::Status consistent = CheckConsistency(state);
  INFO(consistent.ToString());
  REQUIRE(consistent.ok());
}

// ---- The transaction

void RandomEdit(Transaction& trial, const ClusterState& state, Dice& dice) {
  const JobId id{static_cast<uint64_t>(dice.Between(1, static_cast<int>(state.jobs().size())))};
  const Job& job = state.jobs().At(id);
  const auto task = static_cast<uint32_t>(dice.Below(static_cast<int>(job.tasks.size())));
  const Task& value = job.tasks[task];
  if (Waits(value.state)) {
    Policies policies = Policies::Default();
    NodeSearch search(state, policies);
    uint64_t work = 0;
    const auto found = search.Best(job.groups[GroupOf(job, task)].shape, &work);
    if (!found.has_value()) return;
    trial.Place(id, {task, found->node, found->devices});
    trial.BindPlaced(id, dice.Chance(50));
  } else if (value.state == TaskState::kPrepared) {
    trial.Decide(TasksStarted{.job = id, .tasks = {task}});
  } else if (Occupies(value.state)) {
    trial.Decide(TasksReleased{.job = id, .tasks = {task}, .requeue = dice.Chance(50)});
  } else {
    trial.Decide(TasksRequeued{.job = id, .tasks = {task}});
  }
  if (dice.Chance(20)) {
    JobStatus status = job.status;
    status.state = dice.Chance(50) ? JobState::kRestarting : JobState::kRunning;
    trial.Decide(JobStatusChanged{.job = id, .status = status});
  }
  if (dice.Chance(10) && Occupies(job.tasks[task].state)) {
    trial.Decide(NodeRefused{
        .id = job.tasks[task].node, .refusals = 1, .backoff_until = absl::InfiniteFuture()});
  }
  if (dice.Chance(30)) trial.Sync();
}

TEST_CASE("any sequence of trials and rollbacks restores the state") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    TestCluster cluster;
    AddRandomNodes(cluster, dice, 5);
    for (int i = 0; i < 6; ++i) {
      cluster.Submit(absl::StrCat("j", i), {.groups = {RandomGroup(dice, 4)}});
    }
    cluster.Cycle();
    for (uint64_t id = 1; id <= 3; ++id) cluster.PrepareAll(JobId{id});
    const ClusterState& state = cluster.state();
    INFO("seed " << seed);
    const uint64_t before = Fingerprint(state);
    {
      Transaction trial(cluster.state(), cluster.now());
      for (int i = 0; i < 10; ++i) RandomEdit(trial, state, dice);
      trial.Sync();
      const uint64_t middle = Fingerprint(state);
      const Transaction::Mark mark = trial.mark();
      for (int i = 0; i < 10; ++i) RandomEdit(trial, state, dice);
      trial.RollbackTo(mark);
      REQUIRE(Fingerprint(state) == middle);
      if (dice.Chance(50)) trial.Commit();
    }
    REQUIRE(Fingerprint(state) == before);
    REQUIRE(CheckConsistency(state).ok());
  }
}

// ---- allocate against brute force

// Whether as many tasks of the job's only group as it needs fit into the free resources and the
// limits. Tasks are equal, so counting by node is exact.
bool CouldStart(const TestCluster& cluster, const Job& job) {
  const ClusterState& state = cluster.state();
  const Resources each = Each(state, job, 0);
  const auto& models = state.interner().Shape(job.groups[0].shape).shape.devices;
  int64_t fit = 0;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    const bool wrong_model = !models.empty() && !models[0].models.empty() &&
                             !node.spec.devices.empty() && node.spec.devices[0].model != "H100";
    if (wrong_model) return;
    Resources left = node.capacity - node.allocated;
    // Devices are counted exactly.
    if (!models.empty()) {
      const int64_t share = models[0].share;
      int64_t sets = 0, whole = 0;
      for (size_t i = 0; i < node.spec.devices.size(); ++i) {
        const int64_t free = node.devices_used.FreeOf(i);
        if (free == kWhole) ++whole;
        const SharedDevice* shared = node.devices_used.SharesOf(i);
        const int64_t tasks = node.spec.devices[i].max_tasks - (shared ? shared->tasks : 0);
        const bool may = share > 0 && node.spec.devices[i].max_tasks > 1;
        if (!may || !MatchesMake(node.spec.devices[i], models[0])) continue;
        sets +=
            std::min(free / ShareOn(node.spec.devices[i], models[0]), std::max<int64_t>(tasks, 0));
      }
      if (share == 0) sets = whole / std::max(models[0].count, 1);
      left[*state.interner().FindKind("gpu")] = sets * each[*state.interner().FindKind("gpu")];
    }
    for (int64_t room = TaskRoom(node);
         room > 0 && each.FitsIn(left) && fit < job.groups[0].min_available; ++fit, --room) {
      left -= each;
    }
  });
  if (fit < job.groups[0].min_available) return false;
  const Resources all = each.Times(job.groups[0].min_available);
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    if (!(queue.allocated + all).FitsIn(queue.limit)) return false;
    const int bound = queue.spec.max_running_jobs;
    if (bound > 0 && queue.running_jobs >= bound) return false;
    if (id == kRootQueue) return true;
  }
}

TEST_CASE("allocate leaves no job pending that fits, and violates nothing") {
  int waiting = 0, started = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    TestCluster cluster;
    AddRandomNodes(cluster, dice, 4);
    AddRandomQueues(cluster, dice);
    const char* queues[] = {"a", "b", "c"};
    const int jobs = dice.Between(1, 8);
    for (int i = 0; i < jobs; ++i) {
      cluster.Submit(absl::StrCat("j", i), {.queue = queues[dice.Below(3)],
                                            .priority = dice.Below(3),
                                            .groups = {RandomGroup(dice, 5)}});
    }
    INFO("seed " << seed);
    cluster.Settle(dice.Chance(50) ? TestCluster::kNoBudget
                                   : static_cast<uint64_t>(dice.Between(1, 10)));
    CheckState(cluster.state());
    cluster.state().jobs().ForEach([&](JobId, const Job& job) {
      if (job.status.state == JobState::kPending) {
        ++waiting;
        REQUIRE_FALSE(CouldStart(cluster, job));
        REQUIRE(WhyWaiting(cluster.state(), job, cluster.now()).size() == 1);
      } else {
        ++started;
      }
    });
  }
  CHECK(waiting > 300);  // the cases are not trivial
  CHECK(started > 300);
}

// ---- A long random run

// Every third world uses predicted run times.
Policies PoliciesOf(uint32_t seed) {
  PolicyConfig config;
  config.actions = {"allocate"};
  if (seed % 3 == 1) config.actions = {"allocate", "migrate"};
  if (seed % 3 == 0) {
    config.actions = {"allocate", "backfill"};
    config.job_orders = {"shortest_first"};
    config.prediction.enabled = true;
    config.shortest_first.age = absl::Minutes(1);
    config.backfill.fit = BackfillFit::kPredicted;
  }
  return *Policies::Create(config);
}

constexpr char kOwnFault[] = "the job's own fault";

// A small world whose agents and users act at random; after Calm() nothing fails.
class World {
 public:
  explicit World(uint32_t seed) : dice_(seed), cluster_(PoliciesOf(seed)) {
    for (int i = 0; i < 5; ++i) cluster_.AddNode(absl::StrCat("n", i), {.cpu = 6, .gpus = 3});
    TakesAtMost(cluster_, "n0", 3);
    AddRandomQueues(cluster_, dice_);
  }

  void Step() {
    if (!calm_ && dice_.Chance(30)) Submit();
    if (!calm_ && dice_.Chance(8)) DisturbNode();
    if (!calm_ && dice_.Chance(8)) DisturbJob();
    for (int i = 0; i < 4; ++i) SomeReport();
    if (dice_.Chance(30)) cluster_.Advance(absl::Seconds(dice_.Below(5)));
    const Plan plan = cluster_.Cycle(dice_.Chance(30) ? static_cast<uint64_t>(dice_.Between(1, 6))
                                                      : TestCluster::kNoBudget);
    adopted_ += plan.applied ? 1 : 0;
    CheckState(cluster_.state());
    cluster_.state().nodes().ForEach(
        [](NodeId, const Node& node) { REQUIRE(node.status.refusal != kOwnFault); });
  }

  // Faults stop: nodes return, holds and limits are removed, tasks succeed.
  void Calm() {
    calm_ = true;
    const ClusterState& state = cluster_.state();
    for (uint32_t n = 1; n < state.next_node_id().value; ++n) BringBack(NodeId{n});
    for (const char* name : {"org", "a", "b"}) {
      QueueSpec spec = state.FindQueue(name)->spec;
      spec.limit.clear();
      cluster_.Must(QueueUpdated{.id = cluster_.queue_id(name), .spec = spec});
    }
    for (JobId id : ActiveJobs()) {
      if (cluster_.status(id).suspended) {
        cluster_.Must(JobSuspended{.id = id, .suspended = false});
      }
    }
  }

  std::vector<JobId> ActiveJobs() const {
    std::vector<JobId> active;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) active.push_back(id);
    });
    return active;
  }

  TestCluster& cluster() { return cluster_; }
  int64_t adopted() const { return adopted_; }  // plans

 private:
  void Submit() {
    if (cluster_.state().jobs().size() > 20) return;
    testing::JobShape shape = RandomJob(cluster_, dice_);
    shape.checkpoints_devices = dice_.Chance(40);
    cluster_.Submit(absl::StrCat("j", ++submitted_), shape);
  }

  void Register(NodeId id, NodeSpec spec) {
    const uint64_t epoch = cluster_.state().nodes().At(id).status.epoch + 1;
    cluster_.Must(
        NodeRegistered{.id = id, .spec = std::move(spec), .epoch = epoch, .agent_id = "a"});
  }

  void BringBack(NodeId id) {
    NodeSpec spec = cluster_.state().nodes().At(id).spec;
    for (Device& device : spec.devices) device.unhealthy = false;
    spec.taints.clear();
    Register(id, std::move(spec));
    cluster_.Must(NodeSteered{.id = id});
  }

  // A cordon, or a drain of the node or of a device, in any mode.
  void Drain(NodeId id) {
    NodeSteered event{.id = id, .cordoned = true, .draining = dice_.Chance(50)};
    event.drain.mode = static_cast<DrainMode>(dice_.Below(4));
    event.drain.begin = cluster_.now();
    event.drain.deadline = cluster_.now() + absl::Seconds(dice_.Between(1, 120));
    if (dice_.Chance(30)) {
      event.cordoned = event.draining = false;
      event.drain.devices.Add(static_cast<size_t>(dice_.Below(3)));
    }
    cluster_.Must(event);
  }

  // A device fails, or the node gets a taint.
  void Spoil(NodeId id) {
    NodeSpec spec = cluster_.state().nodes().At(id).spec;
    if (dice_.Chance(50)) {
      spec.devices[static_cast<size_t>(dice_.Below(3))].unhealthy = true;
    } else {
      spec.taints = {{.key = "k", .evicts = dice_.Chance(70)}};
    }
    Register(id, std::move(spec));
  }

  void DisturbNode() {
    const NodeId id{static_cast<uint32_t>(dice_.Between(1, 5))};
    const NodeStatus& status = cluster_.state().nodes().At(id).status;
    switch (dice_.Below(4)) {
      case 0:
        if (status.state == NodeState::kReady) {
          cluster_.Must(NodeSilenced{.id = id});
        } else if (status.state == NodeState::kSilent) {
          cluster_.Must(NodeFenced{.id = id});
        }
        return;
      case 1:
        return BringBack(id);
      case 2:
        return Spoil(id);
      default:
        Drain(id);
    }
  }

  void DisturbJob() {
    const std::vector<JobId> active = ActiveJobs();
    if (active.empty()) return;
    const JobId id = active[static_cast<size_t>(dice_.Below(static_cast<int>(active.size())))];
    if (dice_.Chance(30)) {
      cluster_.Must(JobCancelled{.id = id});
    } else {
      const bool freezes = dice_.Chance(50);
      cluster_.Must(JobSuspended{.id = id, .suspended = dice_.Chance(50), .freeze = freezes});
    }
  }

  // The task is refused by the job's own fault, which must never count against the node.
  bool RefuseForItself(TaskKey key) {
    const Task& task = cluster_.job(key.job).tasks[key.task];
    if (task.state != TaskState::kBound && task.state != TaskState::kStarting) return false;
    cluster_.Must(TaskReported{.task = key,
                               .attempt = task.attempt,
                               .state = ReportState::kRefused,
                               .message = kOwnFault,
                               .own_fault = true});
    return true;
  }

  ExitCause AnyCause() {
    if (dice_.Chance(20)) return ExitCause::kReboot;
    return dice_.Chance(20) ? ExitCause::kDevice : ExitCause::kItself;
  }

  // Reports for one random task for which a report is possible.
  void SomeReport() {
    std::vector<TaskKey> tasks;
    for (JobId id : ActiveJobs()) {
      const Job& job = cluster_.job(id);
      for (uint32_t i = 0; i < job.tasks.size(); ++i) {
        const TaskState state = job.tasks[i].state;
        if (Occupies(state) && state != TaskState::kLost && state != TaskState::kPrepared) {
          tasks.push_back({id, i});
        }
      }
    }
    if (tasks.empty()) return;
    const TaskKey key = tasks[static_cast<size_t>(dice_.Below(static_cast<int>(tasks.size())))];
    const bool fault = !calm_ && dice_.Chance(15);
    if (fault && dice_.Chance(50) && RefuseForItself(key)) return;
    const PauseState pause = cluster_.job(key.job).tasks[key.task].pause;
    if (pause == PauseState::kPausing) return ReportPaused(cluster_, dice_, key);
    switch (cluster_.job(key.job).tasks[key.task].state) {
      case TaskState::kBound:
        return cluster_.Report(key.job, key.task,
                               fault ? ReportState::kRefused : ReportState::kPrepared);
      case TaskState::kStarting:
        return cluster_.Report(key.job, key.task,
                               fault ? ReportState::kRefused : ReportState::kRunning);
      case TaskState::kReleasing:
        return cluster_.Report(key.job, key.task, ReportState::kExited, 143, ExitCause::kKilled);
      default:
        return cluster_.Report(key.job, key.task, ReportState::kExited,
                               fault ? dice_.Between(1, 2) : 0,
                               fault ? AnyCause() : ExitCause::kItself);
    }
  }

  Dice dice_;
  TestCluster cluster_;
  int submitted_ = 0;
  int64_t adopted_ = 0;
  bool calm_ = false;
};

TEST_CASE("a long random run: invariants hold, and all jobs end once faults stop") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int i = 0; i < 250; ++i) world.Step();
    world.Calm();
    for (int i = 0; i < 1500 && !world.ActiveJobs().empty(); ++i) world.Step();
    std::string left;
    for (JobId id : world.ActiveJobs()) {
      TestCluster& cluster = world.cluster();
      absl::StrAppend(&left, cluster.job(id).name, " ", cluster.StateOf(id), " ", cluster.Tasks(id),
                      " ", cluster.status(id).message, "\n");
      for (const WaitReason& why : cluster.Why(id)) {
        absl::StrAppend(&left, "  ", static_cast<int>(why.code), " ", why.resource, " ", why.needed,
                        " ", why.free, " ", why.detail, "\n");
      }
    }
    INFO(left);
    REQUIRE(left.empty());
  }
}

// The state that must be equal whether plans are undone and applied, or adopted.
std::string Remains(ClusterState& state) {
  std::string text = absl::StrCat(Fingerprint(state), " dirty");
  const Dirty dirty = state.TakeDirty();
  const auto add = [&](const char* what, const auto& ids) {
    absl::StrAppend(&text, " ", what);
    for (const auto& id : ids) absl::StrAppend(&text, " ", id.value);
  };
  add("queues", dirty.queues);
  add("nodes", dirty.nodes);
  add("jobs", dirty.jobs);
  add("new", dirty.new_jobs);
  add("unsettled", state.unsettled());
  for (TaskKey key : dirty.tasks) absl::StrAppend(&text, " ", key.job.value, "-", key.task);
  const auto times = [&](const char* what, const auto& due) {
    absl::StrAppend(&text, " ", what);
    for (const auto& [at, job] : due) absl::StrAppend(&text, " ", absl::ToUnixNanos(at));
  };
  times("timers", state.timers());
  times("short", state.short_jobs());
  absl::StrAppend(&text, " ready ", state.pending().ready_count());
  std::map<JobId, std::string> classes;  // by their first job, as class ids may differ
  state.pending().classes().ForEach([&](ClassId, const PendingClass& c) {
    const int code = c.blocked == nullptr ? -1 : c.blocked->code;
    if (!c.jobs.empty()) classes[c.jobs.begin()->job] = absl::StrCat(c.jobs.size(), ":", code);
  });
  for (const auto& [job, of] : classes) absl::StrAppend(&text, " ", job.value, ":", of);
  for (const FreeIndex::Key& key : state.free().nodes())
    absl::StrAppend(&text, " ", key.node.value);
  return text;
}

TEST_CASE("adopting a plan gives the same state as undoing and applying it") {
  int64_t adopted = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    World applies(seed), adopts(seed);
    adopts.cluster().Adopt();
    for (int i = 0; i < 150; ++i) {
      applies.Step();
      adopts.Step();
      INFO("seed " << seed << " step " << i);
      REQUIRE(Remains(adopts.cluster().state()) == Remains(applies.cluster().state()));
    }
    adopted += adopts.adopted();
  }
  CHECK(adopted > 50);
}

TEST_CASE("the same run twice gives the same state") {
  const auto live = [](uint32_t seed) {
    World world(seed);
    for (int i = 0; i < 150; ++i) world.Step();
    return Fingerprint(world.cluster().state());
  };
  for (uint32_t seed = 1; seed <= 5; ++seed) CHECK(live(seed) == live(seed));
}

}  // namespace
}  // namespace berth
