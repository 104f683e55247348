// Tables for the lifecycle stage: policies, lost and draining nodes.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::GroupShape;
using testing::JobShape;
using testing::kSecond;
using testing::On;
using testing::Running;
using testing::TestCluster;

// ---- Policies

TEST_CASE("every action on a failure") {
  struct Row {
    PolicyAction action;
    const char* tasks;  // right after the failure of task 1, of groups a{0 1} b{2}
    const char* state;
  };
  const Row row = GENERATE(Row{PolicyAction::kRestartTask, "RxR", "Running"},
                           Row{PolicyAction::kRestartGroup, "RxR", "Running"},
                           Row{PolicyAction::kRestartPartition, "RxR", "Running"},
                           Row{PolicyAction::kRestartJob, "L.L", "Restarting"},
                           Row{PolicyAction::kAbort, "LxL", "Completing"},
                           Row{PolicyAction::kComplete, "LxL", "Completing"},
                           Row{PolicyAction::kIgnore, "RxR", "Running"});
  JobShape shape{.groups = {{.name = "a", .replicas = 2, .cpu = 40}, {.name = "b", .cpu = 40}},
                 .max_retries = 3};
  for (GroupShape& group : shape.groups) group.membership = GangMembership::kIndependent;
  shape.policies = {On(PolicyEvent::kTaskFailed, row.action)};
  Running run(shape);
  run.cluster.Exit(run.job, 1, 7);
  INFO(static_cast<int>(row.action));
  CHECK(run.Tasks() == row.tasks);
  CHECK(run.State() == row.state);
  run.cluster.GoneAll(run.job);
  run.cluster.Advance(kSecond);  // back-off
  switch (row.action) {
    case PolicyAction::kRestartTask:
      CHECK(run.Tasks() == "RBR");
      CHECK(run.cluster.status(run.job).retries == 1);
      run.cluster.PrepareAll(run.job);
      CHECK(run.Tasks() == "RSR");
      break;
    case PolicyAction::kRestartPartition:  // the group: it has none
    case PolicyAction::kRestartGroup:
      CHECK(run.Tasks() == "L.R");
      run.cluster.GoneAll(run.job);
      CHECK(run.Tasks() == "BBR");
      run.cluster.Report(run.job, 0, ReportState::kPrepared);
      run.cluster.Settle();
      CHECK(run.Tasks() == "PBR");
      break;
    case PolicyAction::kRestartJob:
      CHECK(run.Tasks() == "BBB");
      CHECK(run.cluster.status(run.job).starts == 2);
      break;
    case PolicyAction::kAbort:
      CHECK(run.State() == "Failed");
      break;
    case PolicyAction::kComplete:
      CHECK(run.State() == "Succeeded");
      break;
    case PolicyAction::kIgnore:
      CHECK(run.Tasks() == "RxR");
      break;
  }
}

TEST_CASE("exit codes select, a signal counts as 128 plus its number, the first match decides") {
  JobShape shape = Gang(2);
  shape.max_retries = 5;
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kIgnore, {3, 4}),
                    On(PolicyEvent::kTaskFailed, PolicyAction::kAbort, {137}),
                    On(PolicyEvent::kAny, PolicyAction::kRestartJob)};
  Running run(shape);
  SECTION("ignored") {
    run.cluster.Exit(run.job, 0, 4);
    CHECK(run.Tasks() == "xR");
  }
  SECTION("aborted by code") {
    run.cluster.Exit(run.job, 0, 137);
    CHECK(run.State() == "Completing");
  }
  SECTION("aborted by signal") {
    run.cluster.Must(TaskReported{
        .task = {run.job, 0}, .attempt = 1, .state = ReportState::kExited, .exit_signal = 9});
    run.cluster.Settle();
    CHECK(run.State() == "Completing");
    CHECK(run.Message() == "worker-0 exited with 137 on n1");
  }
  SECTION("any other exit code") {
    run.cluster.Exit(run.job, 0, 1);
    CHECK(run.State() == "Restarting");
  }
}

TEST_CASE("group policies override the policies of the job") {
  JobShape shape = Gang(2);
  shape.groups[0].policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kIgnore)};
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kAbort)};
  Running run(shape);
  run.cluster.Exit(run.job, 0, 1);
  CHECK(run.State() == "Running");
  run.cluster.Exit(run.job, 1, 0);
  CHECK(run.State() == "Failed");  // fewer than the minimum succeeded
}

TEST_CASE("ignored failures above the minimum do not fail the job") {
  JobShape shape{.groups = {{.replicas = 2, .min_available = 1, .cpu = 40}}};
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kIgnore)};
  Running run(shape);
  run.cluster.Exit(run.job, 0, 1);
  run.cluster.Exit(run.job, 1, 0);
  CHECK(run.State() == "Succeeded");
}

TEST_CASE("a completed group may end the job") {
  JobShape shape{
      .groups = {{.name = "master", .cpu = 40}, {.name = "worker", .replicas = 2, .cpu = 40}}};
  shape.groups[0].policies = {On(PolicyEvent::kTaskCompleted, PolicyAction::kComplete)};
  Running run(shape);
  run.cluster.Exit(run.job, 0);
  CHECK(run.Tasks() == "oLL");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Succeeded");
}

TEST_CASE("Any does not mean completion") {
  JobShape shape = Gang(1);
  shape.max_retries = 3;
  shape.policies = {On(PolicyEvent::kAny, PolicyAction::kRestartJob)};
  Running run(shape);
  run.cluster.Exit(run.job, 0);
  CHECK(run.State() == "Succeeded");
}

TEST_CASE("delayed action: simultaneous failures use one retry") {
  JobShape shape{.groups = {{.replicas = 3, .cpu = 40}}, .max_retries = 1};
  shape.groups[0].membership = GangMembership::kIndependent;
  shape.policies = {
      On(PolicyEvent::kTaskFailed, PolicyAction::kRestartTask, {}, absl::Seconds(30))};
  Running run(shape);
  run.cluster.Report(run.job, 0, ReportState::kExited, 1);
  run.cluster.Report(run.job, 2, ReportState::kExited, 1);
  run.cluster.Settle();
  CHECK(run.Tasks() == "xRx");
  CHECK(run.cluster.status(run.job).retries == 1);
  run.cluster.Advance(absl::Seconds(29));
  CHECK(run.Tasks() == "xRx");
  run.cluster.Advance(kSecond);
  CHECK(run.Tasks() == "BRB");
  CHECK(run.cluster.status(run.job).delayed.empty());
  run.cluster.RunAll(run.job);
  run.cluster.Exit(run.job, 1, 1);
  CHECK(run.State() == "Completing");
}

TEST_CASE("many tasks that fail at once are handled in one step") {
  JobShape shape{.groups = {{.replicas = 200, .cpu = 1}}, .max_retries = 1};
  shape.groups[0].membership = GangMembership::kIndependent;
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kRestartTask)};
  Running run(shape);
  for (uint32_t i = 0; i < 200; ++i) run.cluster.Report(run.job, i, ReportState::kExited, 1);
  run.cluster.Settle();
  run.cluster.Advance(kSecond);
  CHECK(run.Tasks() == std::string(200, 'B'));
  CHECK(run.cluster.status(run.job).retries == 1);
}

// ---- Nodes

TEST_CASE("a lost node restarts the gang without a retry once it is fenced") {
  Running run(Gang(3));
  const NodeId lost = run.cluster.node_id("n2");
  run.cluster.Must(NodeSilenced{.id = lost});
  run.cluster.Settle();
  CHECK(run.Tasks() == "L?L");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Restarting");
  CHECK(run.Tasks() == ".?.");
  CHECK(run.cluster.Why(run.job)[0].code == WaitCode::kNodeFencing);
  CHECK(run.Message() == "worker-1 was lost on n2");
  run.cluster.Must(NodeFenced{.id = lost});
  run.cluster.Settle();
  CHECK(run.cluster.Where(run.job) == "n1 n4 n3");  // the others kept their places
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("a node returns with its tasks after the restart was decided") {
  Running run(Gang(2));
  const NodeId lost = run.cluster.node_id("n2");
  run.cluster.Must(NodeSilenced{.id = lost});
  run.cluster.Settle();
  run.cluster.Must(NodeRegistered{
      .id = lost, .spec = run.cluster.node("n2").spec, .epoch = 2, .agent_id = "n2"});
  run.cluster.Settle();
  CHECK(run.Tasks() == "LL");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Binding");
}

TEST_CASE("an elastic job keeps running without the lost task") {
  Running run({.groups = {{.replicas = 3, .min_available = 2, .cpu = 40}}}, 4);
  REQUIRE(run.Tasks() == "RRR");
  run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n3")});
  run.cluster.Settle();
  CHECK(run.Tasks() == "RR?");
  CHECK(run.State() == "Running");
  run.cluster.Must(NodeFenced{.id = run.cluster.node_id("n3")});
  run.cluster.Settle();
  CHECK(run.cluster.Where(run.job) == "n1 n2 n4");
}

TEST_CASE("NodeLost with a delay is dropped when the node returns in time") {
  JobShape shape = Gang(2);
  shape.policies = {On(PolicyEvent::kNodeLost, PolicyAction::kRestartJob, {}, absl::Seconds(20))};
  Running run(shape);
  const NodeId lost = run.cluster.node_id("n1");
  run.cluster.Must(NodeSilenced{.id = lost});
  run.cluster.Settle();
  CHECK(run.Tasks() == "?R");
  CHECK(run.cluster.status(run.job).delayed.size() == 1);
  SECTION("in time") {
    run.cluster.Must(NodeRegistered{
        .id = lost, .spec = run.cluster.node("n1").spec, .epoch = 2, .agent_id = "n1"});
    run.cluster.Settle();
    CHECK(run.cluster.status(run.job).delayed.empty());
    run.cluster.Advance(absl::Seconds(30));
    CHECK(run.Tasks() == "RR");
  }
  SECTION("too late") {
    run.cluster.Advance(absl::Seconds(20));
    CHECK(run.Tasks() == "?L");
    CHECK(run.State() == "Restarting");
  }
}

TEST_CASE("on_node_loss: keep waits for the node, replace_now does not") {
  JobShape shape = Gang(2);
  SECTION("keep") {
    shape.on_node_loss = NodeLossPolicy::kKeep;
    Running run(shape);
    const NodeId lost = run.cluster.node_id("n2");
    run.cluster.Must(NodeSilenced{.id = lost});
    run.cluster.Settle();
    run.cluster.Must(NodeFenced{.id = lost});
    run.cluster.Settle();
    CHECK(run.Tasks() == "R?");
    CHECK(run.State() == "Running");
    run.cluster.Must(NodeRegistered{
        .id = lost, .spec = run.cluster.node("n2").spec, .epoch = 2, .agent_id = "n2"});
    run.cluster.Settle();
    CHECK(run.Tasks() == "RR");
  }
  SECTION("keep, suspended and resumed after the fence: no task starts while the old one may run") {
    shape.on_node_loss = NodeLossPolicy::kKeep;
    Running run(shape);
    const NodeId lost = run.cluster.node_id("n2");
    run.cluster.Must(NodeSilenced{.id = lost});
    run.cluster.Must(NodeFenced{.id = lost});
    run.cluster.Must(JobSuspended{.id = run.job, .suspended = true});
    run.cluster.Settle();
    run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
    run.cluster.Settle();
    run.cluster.GoneAll(run.job);
    CHECK(run.Tasks() == ".?");
    CHECK(run.cluster.Why(run.job).at(0).detail ==
          "node n2 is lost, and the job's tasks there may still run: it waits until the node "
          "returns or the job is cancelled");
    run.cluster.Must(NodeRegistered{
        .id = lost, .spec = run.cluster.node("n2").spec, .epoch = 2, .agent_id = "n2"});
    run.cluster.Settle();
    CHECK(run.Tasks() == ".L");
    run.cluster.GoneAll(run.job);
    CHECK(run.Tasks() == "BB");
  }
  SECTION("keep, but cancelled after the fence") {
    shape.on_node_loss = NodeLossPolicy::kKeep;
    Running run(shape);
    run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n2")});
    run.cluster.Must(NodeFenced{.id = run.cluster.node_id("n2")});
    run.cluster.Must(JobCancelled{.id = run.job});
    run.cluster.Settle();
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Cancelled");
  }
  SECTION("replace now") {
    shape.on_node_loss = NodeLossPolicy::kReplaceNow;
    Running run(shape);
    run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n2")});
    run.cluster.Settle();
    run.cluster.GoneAll(run.job);
    CHECK(run.cluster.Where(run.job) == "n1 n3");
  }
}

TEST_CASE("a gang that keeps its members starts whole, although all its nodes fell silent before") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.cpu = 64});
  cluster.AddQueue("default");
  JobShape shape = Gang(2);
  shape.on_node_loss = NodeLossPolicy::kKeep;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1 n2");
  for (const char* name : {"n1", "n2"}) cluster.Must(NodeSilenced{.id = cluster.node_id(name)});
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Binding");
  const auto comes_back = [&](const std::string& name) {
    cluster.Must(NodeRegistered{.id = cluster.node_id(name),
                                .spec = cluster.node(name).spec,
                                .epoch = 2,
                                .agent_id = name});
    cluster.Settle();
  };
  comes_back("n2");
  cluster.Report(job, 1, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.job(job).tasks[1].state == TaskState::kPrepared);
  comes_back("n1");
  CHECK(cluster.job(job).tasks[1].state == TaskState::kPrepared);
  cluster.Report(job, 0, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.job(job).tasks[0].state == TaskState::kStarting);
  CHECK(cluster.job(job).tasks[1].state == TaskState::kStarting);
}

// The plan must match what Apply does: the kept member exists until its node reports that it is
// gone.
TEST_CASE("a restarting gang waits for the member that a lost node keeps") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.cpu = 64});
  cluster.AddQueue("default");
  JobShape shape = Gang(2);
  shape.on_node_loss = NodeLossPolicy::kKeep;
  shape.max_retries = 1;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  cluster.RunAll(job);
  REQUIRE(cluster.StateOf(job) == "Running");
  const NodeId lost = cluster.job(job).tasks[0].node;
  cluster.Must(NodeSilenced{.id = lost});
  cluster.Must(NodeFenced{.id = lost});
  cluster.Settle();
  cluster.Report(job, 1, ReportState::kExited, 1);
  cluster.Settle();
  CHECK(cluster.job(job).tasks[0].state == TaskState::kLost);
  CHECK(cluster.job(job).tasks[0].before_lost == TaskState::kReleasing);
  CHECK(cluster.job(job).tasks[1].state == TaskState::kPending);
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("members whose nodes fall silent while they are stopped no longer belong to the gang") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.cpu = 64});
  cluster.AddQueue("default");
  JobShape shape = Gang(4);
  shape.groups[0].min_available = 2;
  shape.walltime = kSecond;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1 n2 n3 n4");
  const auto falls_silent = [&](const std::string& name) {
    cluster.Must(NodeSilenced{.id = cluster.node_id(name)});
    cluster.Settle();
    return cluster.StateOf(job);
  };
  CHECK(falls_silent("n1") == "Binding");
  CHECK(falls_silent("n2") == "Binding");
  CHECK(falls_silent("n3") == "Restarting");
  CHECK(falls_silent("n4") == "Restarting");
  cluster.Advance(2 * kSecond);
  CHECK(cluster.StateOf(job) == "Restarting");  // no task ran, so no walltime is used up
}

TEST_CASE("a gang that loses all members to a policy before they start remains Binding") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.cpu = 64});
  cluster.AddQueue("default");
  JobShape shape = Gang(2);
  shape.walltime = kSecond;
  shape.groups[0].membership = GangMembership::kIndependent;
  shape.policies = {On(PolicyEvent::kNodeLost, PolicyAction::kRestartTask)};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  for (const char* name : {"n1", "n2"}) {
    cluster.Must(NodeSilenced{.id = cluster.node_id(name)});
    cluster.Settle();
    CHECK(cluster.StateOf(job) == "Binding");
  }
  cluster.Advance(2 * kSecond);
  CHECK(cluster.StateOf(job) == "Binding");
}

TEST_CASE("failures that come with a lost node count as node loss") {
  JobShape shape = Gang(2);
  shape.max_retries = 1;
  Running run(shape);
  run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n2")});
  run.cluster.Report(run.job, 0, ReportState::kExited, 1);
  run.cluster.Settle();
  CHECK(run.cluster.status(run.job).retries == 0);
  CHECK(run.State() == "Restarting");
}

TEST_CASE("a draining node: its jobs leave and start elsewhere") {
  Running run(Gang(2));
  run.cluster.Must(
      NodeSteered{.id = run.cluster.node_id("n2"), .cordoned = true, .draining = true});
  run.cluster.Settle();
  CHECK(run.Tasks() == "LL");
  CHECK(run.Message() == "worker-1 had to leave n2");
  run.cluster.GoneAll(run.job);
  CHECK(run.cluster.Where(run.job) == "n1 n3");
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("a draining node stops only the surplus of an elastic job") {
  Running run({.groups = {{.replicas = 3, .min_available = 2, .cpu = 40}}}, 4);
  run.cluster.Must(
      NodeSteered{.id = run.cluster.node_id("n1"), .cordoned = true, .draining = true});
  run.cluster.Settle();
  CHECK(run.Tasks() == "LRR");
  CHECK(run.State() == "Running");
  run.cluster.GoneAll(run.job);
  CHECK(run.cluster.Where(run.job) == "n4 n2 n3");
}

TEST_CASE("a group that waits in vain fails the job") {
  JobShape shape{
      .groups = {{.name = "a", .cpu = 40},
                 {.name = "b", .cpu = 40, .depends_on = {{0, GroupCondition::kCompleted}}}}};
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kIgnore)};
  Running run(shape);
  run.cluster.Exit(run.job, 0, 1);
  CHECK(run.State() == "Failed");
}

}  // namespace
}  // namespace berth
