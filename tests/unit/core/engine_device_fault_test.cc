// Unhealthy devices and taints that evict; retries given back.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::kSecond;
using testing::NodeShape;
using testing::On;
using testing::TestCluster;

constexpr Duration kMinute = absl::Minutes(1);
using Event = PolicyEvent;
using Action = PolicyAction;

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
  JobShape shape{.groups = {{.name = "worker", .replicas = 2, .cpu = 40, .gpus = 1}},
                 .max_retries = 2};
  shape.groups[0].membership = membership;
  if (membership == GangMembership::kIndependent) shape.groups[0].min_available = 1;
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
  CHECK_FALSE((run.task(1).node == run.cluster.node_id("n2") && run.task(1).devices.Has(0)));
}

TEST_CASE("a job is kept out of the node where its device failed, for a day") {
  OnGpus run(GpuWorkers());
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  const NodeId n2 = run.cluster.node_id("n2");
  const Time until = run.cluster.now() + kAvoidFor;
  CHECK(run.cluster.status(run.job).avoided == AvoidedNodes{{.node = n2, .until = until}});
  run.cluster.GoneAll(run.job);
  run.cluster.RunAll(run.job);
  CHECK(run.cluster.Where(run.job) == "n1 n3");  // although n2 has another device

  // Another job may use the node; this one may again after a day.
  JobShape one = GpuWorkers();
  one.groups[0].replicas = 1;
  const JobId other = run.cluster.Submit("other", one);
  run.cluster.RunAll(other);
  CHECK(run.cluster.Where(other) == "n2");
  run.cluster.Advance(kAvoidFor - kSecond);
  CHECK(run.cluster.status(run.job).avoided.size() == 1);
  run.cluster.Advance(kSecond);
  CHECK(run.cluster.status(run.job).avoided.empty());
  CHECK(CheckConsistency(run.cluster.state()).ok());
}

TEST_CASE("a job is not kept out of a node without which it could not run") {
  JobShape shape = GpuWorkers();
  shape.groups[0].cpu = 1;
  shape.groups[0].replicas = 5;  // of 6 devices on 3 nodes
  TestCluster cluster;
  const NodeShape node = {.gpus = 2};
  cluster.AddNodes("n", 3, node);
  const JobId job = cluster.Submit("j", shape);
  cluster.RunAll(job);
  Register(cluster, "n2", node, {0});
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Restarting");
  CHECK(cluster.status(job).avoided.empty());
  cluster.GoneAll(job);
  cluster.RunAll(job);
  CHECK(cluster.StateOf(job) == "Running");
}

TEST_CASE("a job is kept out of 64 nodes at most, and planning comes to an end") {
  constexpr int kNodes = 66;
  TestCluster cluster;
  const NodeShape node = {.gpus = 1};
  cluster.AddNodes("n", 2 * kNodes, node);
  JobShape shape = GpuWorkers(GangMembership::kIndependent);
  shape.groups[0].replicas = kNodes;
  const JobId job = cluster.Submit("j", shape);
  for (int i = 0; i < 3; ++i) cluster.RunAll(job);
  REQUIRE(cluster.Tasks(job) == std::string(kNodes, 'R'));
  std::vector<std::string> names;
  for (const Task& task : cluster.job(job).tasks) {
    names.push_back(cluster.state().nodes().At(task.node).spec.name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Register(cluster, names[i], node, {0});
    if (i == names.size() / 2) cluster.Advance(kSecond);
  }
  cluster.Settle();
  CHECK(cluster.status(job).avoided.size() == kMaxAvoidedNodes);
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a policy that ignores bad devices keeps the job out of no node") {
  JobShape shape = GpuWorkers();
  shape.policies = {On(Event::kDeviceUnhealthy, Action::kIgnore)};
  OnGpus run(shape);
  Register(run.cluster, "n2", run.kNode, {0});
  run.cluster.Settle();
  CHECK(run.cluster.status(run.job).avoided.empty());
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
  shape.policies = {On(Event::kDeviceUnhealthy, Action::kRestartJob, {}, kMinute)};
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
    CHECK(run.cluster.Tasks(run.job) == "BB");  // both are gone already
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
