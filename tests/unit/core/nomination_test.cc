// Nominations: places that jobs wait for while other tasks are still being released there.
#include <catch2/catch.hpp>

#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

JobShape Gpus(int tasks, int gpus) { return {.groups = {{.replicas = tasks, .gpus = gpus}}}; }

// "n1 n2 -": where the tasks are nominated.
std::string Nominated(const TestCluster& cluster, JobId id) {
  std::string where;
  for (const Task& task : cluster.job(id).tasks) {
    absl::StrAppend(&where, where.empty() ? "" : " ",
                    Reserves(task.state) ? cluster.state().nodes().At(task.node).spec.name : "-");
  }
  return where;
}

// n1 is used by `old`, which is being stopped; n2 is free.
struct HalfFreed {
  HalfFreed() {
    cluster.AddNodes("n", 2, {.gpus = 4});
    old = cluster.Submit("old", Gpus(1, 4));
    cluster.RunAll(old);
    cluster.Must(JobCancelled{.id = old, .reason = "test"});
    cluster.Settle();
    REQUIRE(cluster.Tasks(old) == "L");
  }
  TestCluster cluster;
  JobId old;
};

TEST_CASE("a gang that fits on resources being released is nominated as a whole, then bound") {
  HalfFreed test;
  TestCluster& cluster = test.cluster;
  const JobId gang = cluster.Submit("gang", Gpus(2, 4));
  const JobId small = cluster.Submit("small", Gpus(1, 1));
  cluster.Settle();
  CHECK(Nominated(cluster, gang) == "n1 n2");
  CHECK(cluster.Where(small) == "-");  // n2 is free, but kept for the gang
  CHECK(cluster.status(gang).starts == 0);
  cluster.GoneAll(test.old);
  CHECK(cluster.Where(gang) == "n1 n2");
  CHECK(cluster.StateOf(gang) == "Binding");
  CHECK(cluster.status(gang).starts == 1);
  CHECK(cluster.Where(small) == "-");
}

TEST_CASE("free places are used before places being released") {
  HalfFreed test;
  const JobId one = test.cluster.Submit("one", Gpus(1, 4));
  test.cluster.Settle();
  CHECK(test.cluster.Where(one) == "n2");
}

TEST_CASE("a job that does not fit even on resources being released is not nominated") {
  HalfFreed test;
  const JobId gang = test.cluster.Submit("gang", Gpus(3, 4));
  test.cluster.Settle();
  CHECK(Nominated(test.cluster, gang) == "- - -");
}

TEST_CASE("resources being released are promised only once") {
  HalfFreed test;
  const JobId first = test.cluster.Submit("first", Gpus(2, 4));
  const JobId second = test.cluster.Submit("second", Gpus(2, 2));
  test.cluster.Settle();
  CHECK(Nominated(test.cluster, first) == "n1 n2");
  CHECK(Nominated(test.cluster, second) == "- -");
}

TEST_CASE("a nomination ends when its place is no longer possible") {
  HalfFreed test;
  TestCluster& cluster = test.cluster;
  const JobId gang = cluster.Submit("gang", Gpus(2, 4));
  cluster.Settle();
  REQUIRE(Nominated(cluster, gang) == "n1 n2");
  SECTION("its node no longer accepts tasks") {
    cluster.Must(NodeSteered{.id = cluster.node_id("n2"), .cordoned = true, .reason = "test"});
    cluster.Settle();
    CHECK(Nominated(cluster, gang) == "- -");
    CHECK(cluster.StateOf(gang) == "Pending");
    CHECK(cluster.Why(gang).size() == 1);
  }
  SECTION("a device is unhealthy") {
    NodeSpec spec = cluster.node("n2").spec;
    spec.devices[0].unhealthy = true;
    cluster.Must(
        NodeRegistered{.id = cluster.node_id("n2"), .spec = spec, .epoch = 2, .agent_id = "n2"});
    cluster.Settle();
    CHECK(Nominated(cluster, gang) == "- -");
  }
  SECTION("the job waits for any place again, and gets one") {
    cluster.Must(NodeSteered{.id = cluster.node_id("n2"), .cordoned = true, .reason = "test"});
    cluster.AddNode("n3", {.gpus = 4});
    cluster.Settle();
    cluster.GoneAll(test.old);
    CHECK(cluster.Where(gang) == "n1 n3");
  }
}

TEST_CASE("a moved gang is bound as a whole") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 4});
  const JobId gang = cluster.Submit("gang", Gpus(2, 4));
  cluster.RunAll(gang);
  REQUIRE(cluster.Where(gang) == "n1 n2");
  DeviceSet all;
  for (size_t i = 0; i < 4; ++i) all.Add(i);
  const JobId other = cluster.Submit("other", Gpus(3, 4));
  cluster.Settle();
  cluster.Must(TasksReleased{
      .job = gang,
      .tasks = {0, 1},
      .requeue = true,
      .reason = ReleaseReason::kConsolidated,
      .beneficiary = other,
      .moves_to = {{0, cluster.node_id("n3"), all}, {1, cluster.node_id("n4"), all}}});
  cluster.Report(gang, 0, ReportState::kExited, 143);
  cluster.Cycle();
  CHECK(cluster.Tasks(gang)[0] != 'B');  // the other task still occupies its old node
  cluster.Report(gang, 1, ReportState::kExited, 143);
  cluster.Settle();
  CHECK(cluster.Where(gang) == "n3 n4");
}

TEST_CASE("a nominated job that is held gives up its places") {
  HalfFreed test;
  TestCluster& cluster = test.cluster;
  const JobId gang = cluster.Submit("gang", Gpus(2, 4));
  cluster.Settle();
  REQUIRE(Nominated(cluster, gang) == "n1 n2");
  cluster.Must(JobSuspended{.id = gang, .suspended = true});
  cluster.Settle();
  CHECK(Nominated(cluster, gang) == "- -");
}

JobShape Share(int thousandths) { return {.groups = {{.cpu = 0, .share = thousandths}}}; }

JobId RunsAndStops(TestCluster* cluster, const std::string& name, int share) {
  const JobId id = cluster->Submit(name, Share(share));
  cluster->RunAll(id);
  cluster->Must(JobCancelled{.id = id, .reason = "test"});
  cluster->Settle();
  return id;
}

TEST_CASE("on a shared device a nominated task is bound next to shares that other jobs wait for") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 1, .tasks_per_gpu = 4});
  const JobId x = RunsAndStops(&cluster, "x", 400), y = RunsAndStops(&cluster, "y", 500);
  const JobId a = cluster.Submit("a", Share(300)), b = cluster.Submit("b", Share(500));
  cluster.Settle();
  REQUIRE(Nominated(cluster, a) == "n");
  REQUIRE(Nominated(cluster, b) == "n");
  cluster.GoneAll(y);  // 400 are still in use, and 800 are nominated
  cluster.Settle();
  CHECK(CheckConsistency(cluster.state()).ok());
  const auto bound = [&](JobId id) { return cluster.job(id).tasks[0].state == TaskState::kBound; };
  CHECK(bound(a) + bound(b) <= 1);
  cluster.GoneAll(x);
  cluster.Settle();
  CHECK(bound(a));
  CHECK(bound(b));
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a device never exceeds its task limit while other tasks are being released") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 1, .tasks_per_gpu = 2});
  const JobId x = RunsAndStops(&cluster, "x", 300), y = RunsAndStops(&cluster, "y", 300);
  const JobId a = cluster.Submit("a", Share(300));
  cluster.Settle();
  CHECK(Nominated(cluster, a) == "n");
  cluster.GoneAll(y);
  cluster.Settle();
  CHECK(cluster.job(a).tasks[0].state == TaskState::kBound);
  cluster.GoneAll(x);
  CHECK(CheckConsistency(cluster.state()).ok());
}

}  // namespace
}  // namespace berth
