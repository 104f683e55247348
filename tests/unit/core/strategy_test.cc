// How tasks are placed on nodes: strategies, and affinity and anti-affinity of groups.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

JobShape Laid(int tasks, int gpus, Strategy strategy) {
  return {.groups = {{.replicas = tasks, .gpus = gpus, .strategy = strategy}}};
}

TEST_CASE("binpack fills the tightest node, spread takes the emptiest, lowest id first") {
  TestCluster cluster;
  cluster.AddNode("two", {.gpus = 2});
  cluster.AddNode("four", {.gpus = 4});
  cluster.AddNode("big", {.gpus = 4});
  const JobId packed = cluster.Submit("packed", Laid(3, 1, Strategy::kBinpack));
  cluster.Settle();
  CHECK(cluster.Where(packed) == "two two four");
  const JobId spread = cluster.Submit("spread", Laid(4, 1, Strategy::kSpread));
  cluster.Settle();
  CHECK(cluster.Where(spread) == "big four big four");
}

TEST_CASE("the group's strategy overrides the job's, which overrides the queue's") {
  struct Row {
    Strategy queue, job, group;
    const char* where;
  };
  constexpr Strategy kNone = Strategy::kDefault, kPack = Strategy::kBinpack,
                     kSpread = Strategy::kSpread;
  const Row row =
      GENERATE_COPY(Row{kNone, kNone, kNone, "n1 n1"}, Row{kSpread, kNone, kNone, "n1 n2"},
                    Row{kSpread, kPack, kNone, "n1 n1"}, Row{kSpread, kPack, kSpread, "n1 n2"},
                    Row{kNone, kSpread, kPack, "n1 n1"});
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 4});
  cluster.AddQueue("q", {.strategy = row.queue});
  JobShape shape = Laid(2, 1, row.group);
  shape.queue = "q";
  shape.strategy = row.job;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.Where(job) == row.where);
}

TEST_CASE("tasks without devices prefer nodes without devices, with or without spread") {
  const Strategy strategy = GENERATE(Strategy::kBinpack, Strategy::kSpread, Strategy::kColocate);
  TestCluster cluster;
  cluster.AddNode("gpu", {.cpu = 64, .gpus = 8});
  cluster.AddNode("small", {.cpu = 8});
  cluster.AddNode("large", {.cpu = 32});
  const JobId one = cluster.Submit("one", {.groups = {{.cpu = 4, .strategy = strategy}}});
  cluster.Settle();
  CHECK(cluster.Where(one) == (strategy == Strategy::kSpread ? "large" : "small"));
  const JobId wide = cluster.Submit("wide", {.groups = {{.cpu = 40, .strategy = strategy}}});
  cluster.Settle();
  CHECK(cluster.Where(wide) == "gpu");
}

TEST_CASE("colocate takes the tightest node that holds all, else the one that holds most") {
  TestCluster cluster;
  cluster.AddNode("two", {.gpus = 2});
  cluster.AddNode("six", {.gpus = 6});
  cluster.AddNode("four", {.gpus = 4});
  SECTION("all on one") {
    const JobId job = cluster.Submit("j", Laid(4, 1, Strategy::kColocate));
    cluster.Settle();
    CHECK(cluster.Where(job) == "four four four four");
  }
  SECTION("most on one, then the tightest for the rest") {
    const JobId job = cluster.Submit("j", Laid(8, 1, Strategy::kColocate));
    cluster.Settle();
    CHECK(cluster.Where(job) == "six six six six six six two two");
  }
  SECTION("growth goes where the job is") {
    JobShape shape = Laid(3, 1, Strategy::kColocate);
    shape.groups[0].min_available = 1;
    const JobId other = cluster.Submit("other", Laid(1, 2, Strategy::kBinpack));
    const JobId job = cluster.Submit("j", shape);
    cluster.Settle();
    CHECK(cluster.Where(other) == "two");
    CHECK(cluster.Where(job) == "four four four");
  }
}

TEST_CASE("a group apart from itself gets one task per node, and a gang too large for that waits") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 8});
  JobShape shape = Laid(3, 1, Strategy::kDefault);
  shape.groups[0].apart_from = {0};
  const JobId three = cluster.Submit("three", shape);
  shape.groups[0].replicas = 4;
  const JobId four = cluster.Submit("four", shape);
  cluster.Settle();
  CHECK(cluster.Where(three) == "n1 n2 n3");
  CHECK(cluster.Where(four) == "- - - -");
}

TEST_CASE("groups apart from each other share no node, whichever of them requests it") {
  const bool first_says = GENERATE(true, false);
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 4});
  JobShape shape{
      .groups = {{.name = "a", .replicas = 2, .gpus = 1}, {.name = "b", .replicas = 2, .gpus = 1}}};
  shape.groups[first_says ? 0 : 1].apart_from = {first_says ? 1u : 0u};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.Where(job) == "n1 n1 n2 n2");
}

TEST_CASE(
    "a group near another goes to a node with one of its tasks, although it is listed first") {
  TestCluster cluster;
  cluster.AddNodes("small", 1, {.cpu = 4});
  cluster.AddNode("large", {.cpu = 64});
  JobShape shape{.groups = {{.name = "worker", .replicas = 2, .cpu = 8, .near_groups = {1}},
                            {.name = "server", .replicas = 1, .cpu = 2}}};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.Where(job) == "large large large");
}

TEST_CASE("selectors and excluded nodes apply with every strategy") {
  const Strategy strategy = GENERATE(Strategy::kBinpack, Strategy::kSpread, Strategy::kColocate);
  TestCluster cluster;
  cluster.AddNode("a", {.gpus = 4, .labels = {{"zone", "x"}}});
  cluster.AddNode("b", {.gpus = 4, .labels = {{"zone", "x"}}});
  cluster.AddNode("c", {.gpus = 4});
  JobShape shape = Laid(2, 1, strategy);
  shape.groups[0].match_labels = {{"zone", "x"}};
  shape.groups[0].exclude_nodes = {"a"};
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.Where(job) == "b b");
}

}  // namespace
}  // namespace berth
