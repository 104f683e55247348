// Policies on evictions, on waits and on unhealthy devices; taints that evict; retries given back.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/evictions.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::GroupShape;
using testing::JobShape;
using testing::kSecond;
using testing::NodeShape;
using testing::On;
using testing::Running;
using testing::TestCluster;

constexpr Duration kMinute = absl::Minutes(1);
using Event = PolicyEvent;
using Action = PolicyAction;

LifecyclePolicy After(Event event, Action action, Duration after) {
  return On(event, action, {}, after);
}

// ---- TASK_PENDING

// Two tasks that fill two nodes.
JobShape Workers(int tasks, GangMembership membership = GangMembership::kRigid) {
  JobShape shape{.groups = {{.name = "worker", .replicas = tasks, .cpu = 40}}, .max_retries = 2};
  shape.groups[0].membership = membership;
  if (membership == GangMembership::kIndependent) shape.groups[0].min_available = 1;
  return shape;
}

TEST_CASE("a job that waits too long for its first start ends as its policy says") {
  struct Row {
    Action action;
    const char* state;
  };
  const Row row = GENERATE(Row{Action::kAbort, "Failed"}, Row{Action::kComplete, "Succeeded"},
                           Row{Action::kIgnore, "Pending"}, Row{Action::kRestartJob, "Pending"},
                           Row{Action::kRestartTask, "Pending"});
  TestCluster cluster;
  JobShape shape = Workers(2);
  shape.policies = {After(Event::kTaskPending, row.action, 10 * kMinute)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Advance(10 * kMinute - kSecond);
  CHECK(cluster.StateOf(job) == "Pending");
  cluster.Advance(kSecond);
  CHECK(cluster.StateOf(job) == row.state);
  const bool ended = Ended(cluster.status(job).state);
  CHECK((cluster.status(job).message == "worker-0 has waited for a place for 10m") == ended);
}

TEST_CASE("the timer of a wait wakes the job by itself") {
  TestCluster cluster;
  JobShape shape = Workers(2);
  shape.policies = {After(Event::kTaskPending, Action::kAbort, 10 * kMinute)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  const Time submit = cluster.now();
  CHECK(NextDue(cluster.job(job), submit) == submit + 10 * kMinute);
  CHECK(NextDue(cluster.job(job), submit + 10 * kMinute) == absl::InfiniteFuture());
}

TEST_CASE("a job does not wait while it is held, and its wait begins when it is released") {
  TestCluster cluster;
  JobShape shape = Workers(2);
  shape.policies = {After(Event::kTaskPending, Action::kAbort, kMinute)};
  SECTION("by the user") {
    shape.suspended = true;
    const JobId job = cluster.Submit("j", shape);
    cluster.Advance(5 * kMinute);
    CHECK(cluster.StateOf(job) == "Held");
    cluster.Must(JobSuspended{.id = job, .suspended = false});
    cluster.Advance(kMinute - kSecond);
    CHECK(cluster.StateOf(job) == "Pending");
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Failed");
  }
  SECTION("by its start time") {
    shape.start_after = cluster.now() + 5 * kMinute;
    const JobId job = cluster.Submit("j", shape);
    cluster.Advance(6 * kMinute - kSecond);
    CHECK(cluster.StateOf(job) == "Pending");
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Failed");
  }
  SECTION("by a dependency") {
    const JobId before = cluster.Submit("before", Workers(1));
    shape.dependencies = {{before, DependencyCondition::kAfterAny}};
    const JobId job = cluster.Submit("j", shape);
    cluster.Advance(5 * kMinute);
    cluster.Must(JobCancelled{.id = before});
    cluster.Advance(kMinute - kSecond);
    CHECK(cluster.StateOf(job) == "Pending");
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Failed");
  }
  SECTION("while it is suspended") {
    cluster.AddNodes("n", 2);
    const JobId job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    cluster.Must(JobSuspended{.id = job});
    cluster.Settle();
    cluster.GoneAll(job);
    cluster.Must(NodeSteered{.id = cluster.node_id("n1"), .cordoned = true});
    cluster.Advance(5 * kMinute);
    CHECK(cluster.StateOf(job) == "Suspended");
    cluster.Must(JobSuspended{.id = job, .suspended = false});
    cluster.Advance(kMinute - kSecond);
    CHECK(cluster.StateOf(job) == "Pending");
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Failed");
  }
}

TEST_CASE("a group that follows another waits only once it may start") {
  TestCluster cluster;
  cluster.AddNode("n1");
  JobShape shape{.groups = {{.name = "first", .cpu = 40}, {.name = "then", .cpu = 40}}};
  for (GroupShape& group : shape.groups) group.membership = GangMembership::kIndependent;
  shape.groups[1].min_available = 0;
  shape.groups[1].depends_on = {{0, GroupCondition::kRunning}};
  shape.groups[1].policies = {After(Event::kTaskPending, Action::kAbort, kMinute)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  cluster.Advance(5 * kMinute);  // the first is bound and does not start
  cluster.RunAll(job);
  CHECK(cluster.StateOf(job) == "Running");
  cluster.Advance(kMinute - kSecond);
  CHECK(cluster.Tasks(job) == "R.");
  CHECK(cluster.StateOf(job) == "Running");
  cluster.Advance(kSecond);
  CHECK(cluster.StateOf(job) == "Completing");
  CHECK(cluster.status(job).message == "then-0 has waited for a place for 1m");
}

TEST_CASE("a task that has a place waits from its last step on") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  JobShape shape = Workers(2);
  shape.policies = {After(Event::kTaskPending, Action::kAbort, 30 * kSecond)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "BB");
  cluster.Advance(20 * kSecond);
  cluster.Report(job, 0, ReportState::kPrepared);
  cluster.Advance(9 * kSecond);
  CHECK(cluster.StateOf(job) == "Binding");
  SECTION("one that is not prepared") {
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Completing");
    CHECK(cluster.status(job).message == "worker-1 has waited for its start on n2 for 30s");
  }
  SECTION("one that is not started") {
    cluster.Report(job, 1, ReportState::kPrepared);
    cluster.Settle();
    CHECK(cluster.Tasks(job) == "SS");
    cluster.Advance(29 * kSecond);
    CHECK(cluster.Tasks(job) == "SS");
    cluster.Advance(kSecond);
    CHECK(cluster.StateOf(job) == "Completing");
  }
}

// Three nodes, and an elastic job of four of which three run.
struct Grown {
  explicit Grown(Action action, int partition = 0) {
    JobShape shape = Workers(4, GangMembership::kIndependent);
    shape.groups[0].partition_size = partition;
    if (partition > 0) shape.groups[0].min_available = partition;
    shape.policies = {After(Event::kTaskPending, action, kMinute)};
    cluster.AddNodes("n", 3);
    job = cluster.Submit("j", shape);
    for (int i = 0; i < 4; ++i) cluster.RunAll(job);
    REQUIRE(cluster.StateOf(job) == "Running");
  }
  TestCluster cluster;
  JobId job;
};

TEST_CASE("a surplus task that waits restarts others, each time with a retry, until none is left") {
  Grown run(Action::kRestartJob);
  CHECK(run.cluster.Tasks(run.job) == "RRR.");
  for (int retry = 1; retry <= 2; ++retry) {
    run.cluster.Advance(kMinute);
    CHECK(run.cluster.StateOf(run.job) == "Restarting");
    CHECK(run.cluster.status(run.job).retries == retry);
    CHECK(run.cluster.status(run.job).message == "worker-3 has waited for a place for 1m");
    run.cluster.GoneAll(run.job);
    run.cluster.Advance(4 * kSecond);  // back-off
    for (int i = 0; i < 4; ++i) run.cluster.RunAll(run.job);
    CHECK(run.cluster.Tasks(run.job) == "RRR.");
  }
  run.cluster.Advance(2 * kMinute);
  CHECK(run.cluster.StateOf(run.job) == "Completing");
  CHECK(run.cluster.status(run.job).message ==
        "worker-3 has waited for a place for 1m; all 2 retries are used");
}

TEST_CASE("restarting a task or tasks that all wait means nothing") {
  Grown run(Action::kRestartTask);
  run.cluster.Advance(10 * kMinute);
  CHECK(run.cluster.Tasks(run.job) == "RRR.");
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("a wait restarts the group once, and the count begins anew") {
  Grown run(Action::kRestartGroup);
  run.cluster.Advance(kMinute);
  CHECK(run.cluster.Tasks(run.job) == "LLL.");
  CHECK(run.cluster.StateOf(run.job) == "Running");
  CHECK(run.cluster.status(run.job).retries == 1);
  run.cluster.Advance(kMinute / 2);
  CHECK(run.cluster.status(run.job).retries == 1);
  run.cluster.GoneAll(run.job);
  for (int i = 0; i < 4; ++i) run.cluster.RunAll(run.job);
  CHECK(run.cluster.Tasks(run.job) == "RRR.");
  CHECK(run.cluster.status(run.job).retries == 1);
}

TEST_CASE("a task that does not start is tried elsewhere while the others run") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  JobShape shape = Workers(2, GangMembership::kIndependent);
  shape.policies = {After(Event::kTaskPending, Action::kRestartTask, 30 * kSecond)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  cluster.PrepareAll(job);
  cluster.Report(job, 0, ReportState::kRunning);
  cluster.Settle();
  INFO(cluster.Tasks(job));
  cluster.Advance(30 * kSecond);
  CHECK(cluster.job(job).tasks[1].state == TaskState::kReleasing);
  CHECK(cluster.status(job).retries == 1);
}

TEST_CASE("the policies for any event leave waits and evictions alone") {
  TestCluster cluster;
  JobShape shape = Workers(1);
  shape.policies = {On(Event::kAny, Action::kAbort)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Advance(absl::Hours(24));
  CHECK(cluster.StateOf(job) == "Pending");
}

// ---- TASK_EVICTED

// A preemptible job of one GPU a task on two nodes of two GPUs, and who comes before it.
struct Evicted {
  explicit Evicted(Action action, int least, Duration after = absl::ZeroDuration())
      : contest({"allocate", "preempt"}) {
    contest.AddNodes("n", 2, {.gpus = 2});
    JobShape shape = Elastic(least, 4, 1);
    shape.max_retries = 1;
    shape.policies = {After(Event::kTaskEvicted, action, after)};
    low = contest.Run("low", shape);
    contest.Submit("high", testing::Firm(testing::Gang(1, 2, "", 5)));
    contest.Settle();
  }
  Contest contest;
  JobId low;
};

int Releasing(const Contest& contest, JobId job) {
  return TallyOf(contest.job(job)).In(TaskState::kReleasing);
}

TEST_CASE("an eviction of surplus tasks is answered once") {
  SECTION("by nothing") {
    Evicted run(Action::kIgnore, 2);
    CHECK(Releasing(run.contest, run.low) == 2);
    CHECK(run.contest.status(run.low).delayed.empty());
  }
  SECTION("by the end of the job") {
    const Action action = GENERATE(Action::kAbort, Action::kComplete);
    Evicted run(action, 2);
    CHECK(run.contest.StateOf(run.low) == "Completing");
    CHECK(run.contest.status(run.low).message.find("was evicted for job high") !=
          std::string::npos);
    run.contest.Leave();
    CHECK(run.contest.StateOf(run.low) == (action == Action::kAbort ? "Failed" : "Succeeded"));
  }
  SECTION("by a restart of the others, without a retry") {
    const Action action = GENERATE(Action::kRestartGroup, Action::kRestartJob);
    Evicted run(action, 2);
    CHECK(Releasing(run.contest, run.low) == 4);
    CHECK(run.contest.status(run.low).retries == 0);
    run.contest.Leave();
    for (int i = 0; i < 5; ++i) run.contest.RunAll(run.low);
    // The job runs with what is left, and the eviction is over although two tasks still wait.
    CHECK(TallyOf(run.contest.job(run.low)).In(TaskState::kRunning) == 2);
    CHECK(run.contest.status(run.low).delayed.empty());
    run.contest.Advance(absl::Hours(1));
    CHECK(TallyOf(run.contest.job(run.low)).In(TaskState::kRunning) == 2);
  }
  SECTION("by a restart of the task, which it does anyway") {
    Evicted run(Action::kRestartTask, 2);
    CHECK(Releasing(run.contest, run.low) == 2);
    CHECK(run.contest.status(run.low).delayed.empty());
  }
}

TEST_CASE("an eviction of the whole job can end it, and restarts it otherwise") {
  const Action action = GENERATE(Action::kAbort, Action::kComplete, Action::kRestartJob,
                                 Action::kRestartGroup, Action::kIgnore);
  Evicted run(action, 4);
  const bool ends = action == Action::kAbort || action == Action::kComplete;
  CHECK(run.contest.StateOf(run.low) == (ends ? "Completing" : "Restarting"));
  CHECK(run.contest.status(run.low).delayed.empty());
  run.contest.Leave();
  CHECK(run.contest.StateOf(run.low) == (action == Action::kAbort      ? "Failed"
                                         : action == Action::kComplete ? "Succeeded"
                                                                       : "Pending"));
  CHECK(run.contest.status(run.low).retries == 0);
}

TEST_CASE("an evicted task that is placed again in time is no event") {
  Evicted run(Action::kAbort, 4, 10 * kMinute);
  CHECK(run.contest.StateOf(run.low) == "Restarting");
  run.contest.Leave();
  CHECK(run.contest.status(run.low).delayed.size() == 1);
  run.contest.Advance(9 * kMinute);
  CHECK(run.contest.StateOf(run.low) == "Pending");
  SECTION("it is not") {
    run.contest.Advance(kMinute);
    CHECK(run.contest.StateOf(run.low) == "Failed");
    CHECK(run.contest.status(run.low).message == "w-0 was evicted for job high");
  }
  SECTION("it is") {
    run.contest.AddNode("n3", {.gpus = 2});
    run.contest.RunAll(run.low);
    CHECK(run.contest.StateOf(run.low) == "Running");
    CHECK(run.contest.status(run.low).delayed.empty());
    run.contest.Advance(10 * kMinute);
    CHECK(run.contest.StateOf(run.low) == "Running");
  }
}

TEST_CASE("a gang that was incomplete for too long is evicted") {
  Contest contest({"allocate", "expire_gangs"});
  contest.AddNodes("n", 2, {.gpus = 1});
  JobShape shape = testing::Gang(2, 1);
  shape.groups[0].membership = GangMembership::kIndependent;
  shape.policies = {On(Event::kNodeLost, Action::kRestartTask),
                    On(Event::kTaskEvicted, Action::kAbort)};
  const JobId job = contest.Run("j", shape);
  contest.Must(NodeSilenced{.id = contest.node_id("n2")});
  contest.Must(NodeFenced{.id = contest.node_id("n2")});
  contest.Settle();
  CHECK(contest.Tasks(job) == "R.");
  contest.Advance(absl::Hours(1));
  CHECK(contest.StateOf(job) == "Completing");
  CHECK(contest.status(job).message == "w-0 was stopped: its gang was incomplete for too long");
}

// ---- DEVICE_UNHEALTHY

void Register(TestCluster& cluster, const std::string& name, const NodeShape& shape,
              std::vector<int> bad = {}) {
  NodeSpec spec = testing::MakeNode(name, shape);
  for (const int device : bad) spec.devices[static_cast<size_t>(device)].unhealthy = true;
  cluster.Must(NodeRegistered{.id = cluster.node_id(name),
                              .spec = std::move(spec),
                              .epoch = cluster.node(name).status.epoch + 1,
                              .agent_id = name});
}

// Two tasks of a GPU each on n1 and n2, and another node.
struct OnGpus {
  explicit OnGpus(JobShape shape) {
    cluster.AddNodes("n", 3, kNode);
    job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    REQUIRE(cluster.Where(job) == "n1 n2");
  }
  const Task& task(uint32_t index) const { return cluster.job(job).tasks[index]; }

  const NodeShape kNode = {.gpus = 2};
  TestCluster cluster;
  JobId job;
};

JobShape GpuWorkers(GangMembership membership = GangMembership::kRigid) {
  JobShape shape = Workers(2, membership);
  shape.groups[0].gpus = 1;
  return shape;
}

TEST_CASE("a gang leaves a device that becomes unhealthy, keeps its other place and its retries") {
  OnGpus run(GpuWorkers());
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(run.job) == "Restarting");
  CHECK(run.cluster.status(run.job).message == "worker-1: device n2-gpu-0 of n2 is unhealthy");
  CHECK(run.cluster.status(run.job).retries == 0);
  CHECK(run.task(0).released == ReleaseReason::kDrain);
  CHECK(run.task(0).moves);
  CHECK_FALSE(run.task(1).moves);
  run.cluster.GoneAll(run.job);
  run.cluster.RunAll(run.job);
  CHECK(run.cluster.StateOf(run.job) == "Running");
  CHECK(run.task(0).node == run.cluster.node_id("n1"));
  CHECK_FALSE(run.task(1).node == run.cluster.node_id("n2") && run.task(1).devices.Has(0));
}

TEST_CASE("only the device of the task counts") {
  OnGpus run(GpuWorkers());
  Register(run.cluster, "n2", run.kNode, {1});
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RR");
}

TEST_CASE("policies decide about an unhealthy device") {
  struct Row {
    Action action;
    const char* tasks;
    const char* state;
  };
  const Row row = GENERATE(
      Row{Action::kRestartTask, "RL", "Running"}, Row{Action::kRestartGroup, "LL", "Running"},
      Row{Action::kRestartJob, "LL", "Restarting"}, Row{Action::kAbort, "LL", "Completing"},
      Row{Action::kComplete, "LL", "Completing"}, Row{Action::kIgnore, "RR", "Running"});
  JobShape shape = GpuWorkers(GangMembership::kIndependent);
  shape.policies = {On(Event::kDeviceUnhealthy, row.action)};
  OnGpus run(shape);
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == row.tasks);
  CHECK(run.cluster.StateOf(run.job) == row.state);
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("by default, a task that others do not need is replaced alone") {
  OnGpus run(GpuWorkers(GangMembership::kIndependent));
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RL");
  CHECK(run.task(1).released == ReleaseReason::kDrain);
}

TEST_CASE("a device that recovers within the policy's time is no event") {
  JobShape shape = GpuWorkers();
  shape.policies = {After(Event::kDeviceUnhealthy, Action::kRestartJob, kMinute)};
  OnGpus run(shape);
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  CHECK(run.cluster.status(run.job).delayed.size() == 1);
  SECTION("it recovers") {
    Register(run.cluster, "n2", run.kNode);
    run.cluster.Advance(kMinute);
    CHECK(run.cluster.Tasks(run.job) == "RR");
    CHECK(run.cluster.status(run.job).delayed.empty());
  }
  SECTION("it does not") {
    run.cluster.Advance(kMinute);
    CHECK(run.cluster.StateOf(run.job) == "Restarting");
  }
}

TEST_CASE("a task that fails because of its device uses no retry") {
  JobShape shape = GpuWorkers();
  shape.max_retries = 0;
  OnGpus run(shape);
  const auto fail = [&] {
    run.cluster.Report(run.job, 1, ReportState::kExited, 134, ExitCause::kDevice);
    run.cluster.Settle();
  };
  SECTION("by default") {
    fail();
    CHECK(run.task(1).end_cause == EndCause::kDevice);
    CHECK(run.cluster.StateOf(run.job) == "Restarting");
    CHECK(run.cluster.status(run.job).message == "worker-1 exited with 134 on n2");
  }
  SECTION("as the first failure explains the others") {
    run.cluster.Report(run.job, 0, ReportState::kExited, 1);
    fail();
    CHECK(run.cluster.StateOf(run.job) == "Restarting");
    CHECK(run.cluster.status(run.job).retries == 0);
  }
}

TEST_CASE("a device that is ignored loses the task that fails because of it") {
  JobShape shape = GpuWorkers();
  shape.policies = {On(Event::kDeviceUnhealthy, Action::kIgnore)};
  OnGpus run(shape);
  run.cluster.Report(run.job, 1, ReportState::kExited, 134, ExitCause::kDevice);
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(run.job) == "Restarting");
  CHECK(run.cluster.status(run.job).retries == 0);
}

// ---- Retries given back

TEST_CASE("a failure before a node is found to be lost gives its retry back") {
  OnGpus run(GpuWorkers());
  run.cluster.Exit(run.job, 0, 1);
  CHECK(run.cluster.status(run.job).retries == 1);
  const NodeId lost = run.cluster.node_id("n2");
  SECTION("within a minute") {
    run.cluster.Advance(15 * kSecond);
    run.cluster.Must(NodeSilenced{.id = lost});
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).retries == 0);
    CHECK(run.cluster.status(run.job).message ==
          "worker-0 exited with 1 on n1; worker-1 was lost on n2");
    run.cluster.Must(NodeFenced{.id = lost});
    run.cluster.Settle();
    CHECK(run.cluster.Tasks(run.job) == "BB");
    CHECK(run.cluster.status(run.job).retries == 0);
    CHECK(run.cluster.status(run.job).message ==
          "worker-0 exited with 1 on n1; worker-1 was lost on n2");
    // Once: the next failure uses one.
    run.cluster.RunAll(run.job);
    run.cluster.Exit(run.job, 0, 1);
    CHECK(run.cluster.status(run.job).retries == 1);
  }
  SECTION("not later") {
    run.cluster.Advance(61 * kSecond);
    run.cluster.Must(NodeSilenced{.id = lost});
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).retries == 1);
  }
  SECTION("a node that has nothing to do with it") {
    run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n3")});
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).retries == 1);
  }
  SECTION("a device that a member used") {
    Register(run.cluster, "n2", run.kNode, {0});
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).retries == 0);
    CHECK(run.cluster.status(run.job).message ==
          "worker-0 exited with 1 on n1; worker-1: device n2-gpu-0 of n2 is unhealthy");
  }
  SECTION("a member that failed because of its device") {
    run.cluster.Report(run.job, 1, ReportState::kExited, 134, ExitCause::kDevice);
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).retries == 0);
    CHECK(run.cluster.status(run.job).message ==
          "worker-0 exited with 1 on n1; worker-1 exited with 134 on n2");
  }
}

TEST_CASE("a member that may be replaced at once gives the retry back, too") {
  JobShape shape = GpuWorkers();
  shape.on_node_loss = NodeLossPolicy::kReplaceNow;
  OnGpus run(shape);
  run.cluster.Exit(run.job, 0, 1);
  run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n2")});
  run.cluster.Settle();
  CHECK(run.cluster.status(run.job).retries == 0);
}

// ---- Taints that evict

NodeShape Tainted(bool evicts) {
  return {.gpus = 2, .taints = {{.key = "maintenance", .value = "rack-7", .evicts = evicts}}};
}

TEST_CASE("tasks that do not tolerate a taint that evicts leave the node as if it were drained") {
  OnGpus run(GpuWorkers());
  Register(run.cluster, "n2", Tainted(true));
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(run.job) == "Restarting");
  CHECK(run.cluster.status(run.job).message ==
        "worker-1 had to leave n2: it does not tolerate the taint maintenance=rack-7");
  CHECK(run.task(0).released == ReleaseReason::kDrain);
  CHECK(run.task(0).moves);
  CHECK_FALSE(run.task(1).moves);
  run.cluster.GoneAll(run.job);
  run.cluster.RunAll(run.job);
  CHECK(run.cluster.StateOf(run.job) == "Running");
  CHECK_FALSE(run.task(1).node == run.cluster.node_id("n2"));
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("a task that others do not need leaves a tainted node alone") {
  OnGpus run(GpuWorkers(GangMembership::kIndependent));
  Register(run.cluster, "n2", Tainted(true));
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RL");
}

TEST_CASE("who tolerates a taint stays, and a taint that does not evict changes nothing") {
  const bool evicts = GENERATE(false, true);
  JobShape shape = GpuWorkers();
  if (evicts) shape.groups[0].tolerations = {{.key = "maintenance", .value = ""}};
  OnGpus run(shape);
  Register(run.cluster, "n2", Tainted(evicts));
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RR");
}

TEST_CASE("a place that is kept on a node is given up when the node gets a taint that evicts") {
  OnGpus run(GpuWorkers());
  run.cluster.Exit(run.job, 0, 1);
  CHECK(run.task(1).moves);  // to its own place
  Register(run.cluster, "n2", Tainted(true));
  run.cluster.Settle();
  CHECK_FALSE(run.task(1).moves);
}

}  // namespace
}  // namespace berth
