// Spares: places in reserve for the tasks of a group.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::NodeShape;
using testing::TestCluster;

const NodeShape kSmall = {.cpu = 8};

// A gang of three with spares on nodes of one task each: n1, n2, ...
struct Gang : TestCluster {
  explicit Gang(int nodes = 5, int spares = 1, GangMembership membership = GangMembership::kDefault,
                int min_available = -1) {
    AddNodes("n", nodes, kSmall);
    JobShape shape;
    shape.max_retries = 5;
    shape.groups = {GroupShape{.name = "w",
                               .replicas = 3,
                               .min_available = min_available,
                               .cpu = 8,
                               .membership = membership},
                    GroupShape{.name = "w-spares", .replicas = spares, .cpu = 8, .spare_of = 0}};
    id = Submit("gang", shape);
  }
  void Run() {
    RunAll(id);
    PrepareAll(id);
    REQUIRE(StateOf(id) == "Running");
  }
  std::string NodeOf(uint32_t task) const {
    return state().nodes().At(job(id).tasks[task].node).spec.name;
  }
  void LoseNode(const std::string& name) {
    Must(NodeSilenced{node_id(name)});
    Settle();
    Must(NodeFenced{node_id(name)});
    Settle();
  }
  // From the release of a gang until it runs again.
  void RunAgain() {
    GoneAll(id);
    PrepareAll(id);
    ReportAll(id, TaskState::kStarting, ReportState::kRunning);
  }
  JobId id;
};

TEST_CASE("spares are prepared and do not start, and have no rank") {
  Gang c;
  c.Run();
  CHECK(c.Tasks(c.id) == "RRRP");
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(c.job(c.id).tasks[i].rank == i);
    CHECK(c.job(c.id).tasks[i].world == 3);
  }
  CHECK(c.job(c.id).tasks[3].rank == kNoRank);
  CHECK_FALSE(c.Try(TasksStarted{.job = c.id, .tasks = {3}}).ok());
}

TEST_CASE("a gang does not wait for its spares") {
  SECTION("that have no place") {
    Gang c(3);
    c.Run();
    CHECK(c.Tasks(c.id) == "RRR.");
    c.AddNode("n4", kSmall);
    c.Settle();
    c.PrepareAll(c.id);
    CHECK(c.Tasks(c.id) == "RRRP");
    CHECK(c.job(c.id).tasks[0].epoch == 1);
  }
  SECTION("that are not prepared") {
    Gang c;
    c.Settle();
    for (uint32_t i = 0; i < 3; ++i) c.Report(c.id, i, ReportState::kPrepared);
    c.Settle();
    CHECK(c.Tasks(c.id).substr(0, 3) == "SSS");
  }
}

TEST_CASE("a task of a gang whose node is lost takes the place of a spare") {
  Gang c(4);
  c.Run();
  const std::string spare = c.NodeOf(3), lost = c.NodeOf(1), first = c.NodeOf(0);
  c.LoseNode(lost);
  c.RunAgain();
  CHECK(c.Tasks(c.id) == "RRR.");
  CHECK(c.NodeOf(1) == spare);
  CHECK(c.NodeOf(0) == first);
  CHECK(c.job(c.id).tasks[1].rank == 1);
  CHECK(c.status(c.id).retries == 0);
  for (uint32_t i = 0; i < 3; ++i) CHECK(c.job(c.id).tasks[i].epoch == c.job(c.id).tasks[0].epoch);
  c.AddNode("n9", kSmall);  // the next spare
  c.Settle();
  c.PrepareAll(c.id);
  CHECK(c.Tasks(c.id) == "RRRP");
}

// Its peers notice that a node died seconds before the server does, and fail.
TEST_CASE("the spare goes to the task whose node is lost, not to one that failed before") {
  Gang c(4);
  c.Run();
  const std::string spare = c.NodeOf(3), failed = c.NodeOf(0), lost = c.NodeOf(1);
  c.Exit(c.id, 0, 1);
  c.LoseNode(lost);
  c.RunAgain();
  CHECK(c.Tasks(c.id) == "RRR.");
  CHECK(c.NodeOf(1) == spare);
  CHECK(c.NodeOf(0) == failed);
}

TEST_CASE("a task that fails takes the place of a spare, which gets the one that it leaves") {
  Gang c(4);
  c.Run();
  const std::string spare = c.NodeOf(3), failed = c.NodeOf(1);
  c.Exit(c.id, 1, 137);
  c.Advance(absl::Seconds(2));
  c.RunAgain();
  c.Advance(absl::Seconds(2));
  c.PrepareAll(c.id);
  c.ReportAll(c.id, TaskState::kStarting, ReportState::kRunning);
  CHECK(c.Tasks(c.id).substr(0, 3) == "RRR");
  CHECK(c.NodeOf(1) == spare);
  CHECK(c.NodeOf(3) == failed);
  CHECK(c.status(c.id).retries == 1);
}

TEST_CASE("a task that is replaced alone takes the place of a spare, and the others go on") {
  Gang c(4, 1, GangMembership::kRendezvous);
  c.Run();
  const std::string spare = c.NodeOf(3), lost = c.NodeOf(1);
  c.LoseNode(lost);
  CHECK(c.Tasks(c.id) == "R.RL");
  c.GoneAll(c.id);
  c.PrepareAll(c.id);
  c.ReportAll(c.id, TaskState::kStarting, ReportState::kRunning);
  CHECK(c.Tasks(c.id) == "RRR.");
  CHECK(c.NodeOf(1) == spare);
  CHECK(c.job(c.id).tasks[0].attempt == 1);
}

TEST_CASE("a rigid group that restarts beside another one uses the places of its spares") {
  TestCluster c;
  c.AddNodes("n", 5, kSmall);
  JobShape shape;
  shape.max_retries = 5;
  shape.groups = {GroupShape{.name = "w", .replicas = 2, .cpu = 8},
                  GroupShape{.name = "loader", .replicas = 2, .min_available = 0, .cpu = 8},
                  GroupShape{.name = "w-spares", .replicas = 1, .cpu = 8, .spare_of = 0}};
  const JobId id = c.Submit("mixed", shape);
  c.RunAll(id);
  for (int i = 0; i < 3; ++i) {
    c.PrepareAll(id);
    c.ReportAll(id, TaskState::kStarting, ReportState::kRunning);
  }
  REQUIRE(c.Tasks(id) == "RRRRP");
  const NodeId lost = c.job(id).tasks[1].node;
  c.Must(NodeSilenced{lost});
  c.Settle();
  c.Must(NodeFenced{lost});
  c.Settle();
  for (int i = 0; i < 4; ++i) {
    c.GoneAll(id);
    c.PrepareAll(id);
    c.ReportAll(id, TaskState::kStarting, ReportState::kRunning);
  }
  CHECK(c.Tasks(id) == "RRRR.");
  CHECK(c.job(id).tasks[0].epoch == c.job(id).tasks[1].epoch);
}

TEST_CASE("the loss of a spare is no matter of the gang") {
  Gang c(4);
  c.Run();
  SECTION("by its node") { c.LoseNode(c.NodeOf(3)); }
  SECTION("by a drain") {
    c.Must(NodeSteered{.id = c.job(c.id).tasks[3].node, .cordoned = true, .draining = true});
    c.Settle();
    c.GoneAll(c.id);
  }
  SECTION("refused by its node") {
    c.LoseNode(c.NodeOf(3));
    c.AddNode("n9", kSmall);
    c.Settle();
    c.Report(c.id, 3, ReportState::kRefused);
    c.Settle();
  }
  CHECK(c.Tasks(c.id).substr(0, 3) == "RRR");
  CHECK(c.StateOf(c.id) == "Running");
  CHECK(c.job(c.id).tasks[0].attempt == 1);
  CHECK(c.status(c.id).retries == 0);
}

TEST_CASE("policies of the job say nothing about its spares") {
  TestCluster c;
  c.AddNodes("n", 3, kSmall);
  JobShape shape;
  shape.policies = {{.event = PolicyEvent::kNodeLost, .action = PolicyAction::kAbort}};
  shape.groups = {GroupShape{.name = "w", .replicas = 2, .cpu = 8},
                  GroupShape{.name = "w-spares", .replicas = 1, .cpu = 8, .spare_of = 0}};
  const JobId id = c.Submit("gang", shape);
  c.RunAll(id);
  c.PrepareAll(id);
  REQUIRE(c.Tasks(id) == "RRP");
  c.Must(NodeSilenced{c.job(id).tasks[2].node});
  c.Settle();
  c.Must(NodeFenced{c.job(id).tasks[2].node});
  c.Settle();
  CHECK(c.StateOf(id) == "Running");
}

TEST_CASE("a job ends with its workers, and stops its spares") {
  Gang c;
  c.Run();
  for (uint32_t i = 0; i < 3; ++i) c.Report(c.id, i, ReportState::kExited, 0);
  c.Settle();
  CHECK(c.Tasks(c.id) == "oooL");
  CHECK(c.StateOf(c.id) == "Completing");
  c.GoneAll(c.id);
  CHECK(c.StateOf(c.id) == "Succeeded");
}

TEST_CASE("nobody looks for spares of a group that is ending") {
  Gang c(4);
  c.Run();
  c.LoseNode(c.NodeOf(3));
  REQUIRE(c.Tasks(c.id) == "RRR.");
  c.Exit(c.id, 0);
  CHECK(c.Tasks(c.id) == "oRR.");
}

TEST_CASE("spares of an elastic group come after its workers") {
  Gang c(3, 1, GangMembership::kDefault, 2);
  c.Run();
  CHECK(c.Tasks(c.id) == "RRR.");
}

TEST_CASE("a suspended job keeps no spares") {
  Gang c;
  c.Run();
  c.Must(JobSuspended{.id = c.id});
  c.Settle();
  c.GoneAll(c.id);
  CHECK(c.Tasks(c.id) == "....");
  CHECK(c.StateOf(c.id) == "Suspended");
  c.Must(JobSuspended{.id = c.id, .suspended = false});
  c.Run();
  CHECK(c.Tasks(c.id) == "RRRP");
}

TEST_CASE("an urgent job takes a spare and leaves the gang alone") {
  TestCluster c(testing::PoliciesWith({"allocate", "preempt"}));
  c.AddNodes("n", 4, kSmall);
  JobShape shape;
  shape.preemptible = true;
  shape.groups = {GroupShape{.name = "w", .replicas = 3, .cpu = 8},
                  GroupShape{.name = "w-spares", .replicas = 1, .cpu = 8, .spare_of = 0}};
  const JobId gang = c.Submit("gang", shape);
  c.RunAll(gang);
  c.PrepareAll(gang);
  REQUIRE(c.Tasks(gang) == "RRRP");
  c.Submit("urgent", {.priority = 10, .groups = {GroupShape{.cpu = 8}}});
  c.Advance(absl::Minutes(1));
  CHECK(c.Tasks(gang) == "RRRL");
}

}  // namespace
}  // namespace berth
