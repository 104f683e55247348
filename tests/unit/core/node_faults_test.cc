// How often nodes failed lately, and what keeps large gangs off them.
#include "core/model/node_faults.h"

#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::NodeShape;
using testing::TestCluster;

const NodeShape kNode = {.gpus = 2};

int64_t FaultsOf(const TestCluster& cluster, const std::string& node) {
  return cluster.node(node).status.faults.thousandths;
}

void Register(TestCluster& cluster, const std::string& name, std::vector<size_t> bad) {
  NodeSpec spec = testing::MakeNode(name, kNode);
  for (const size_t device : bad) spec.devices[device].unhealthy = true;
  cluster.Must(NodeRegistered{.id = cluster.node_id(name),
                              .spec = std::move(spec),
                              .epoch = cluster.node(name).status.epoch + 1,
                              .agent_id = name});
}

void Lose(TestCluster& cluster, const std::string& name) {
  cluster.Must(NodeSilenced{cluster.node_id(name)});
  cluster.Must(NodeFenced{cluster.node_id(name)});
}

JobShape Workers(int replicas) {
  return {.groups = {{.name = "w", .replicas = replicas, .cpu = 1, .gpus = 1}}};
}

TEST_CASE("a fault counts half after each week") {
  const Time now = absl::FromUnixSeconds(1'000'000'000);
  NodeFaults faults = WithFault({}, now);
  CHECK(FaultsAt(faults, now) == 1000);
  CHECK(FaultsAt(faults, now - absl::Hours(1)) == 1000);
  CHECK(FaultsAt(faults, now + kFaultHalfLife / 2) == 750);
  CHECK(FaultsAt(faults, now + kFaultHalfLife) == 500);
  CHECK(FaultsAt(faults, now + 2 * kFaultHalfLife) == 250);
  CHECK(FaultsAt(faults, now + 1000 * kFaultHalfLife) == 0);
  faults = WithFault(faults, now + kFaultHalfLife);
  CHECK(faults.thousandths == 1500);
  for (int i = 0; i < 2000; ++i) faults = WithFault(faults, now + kFaultHalfLife);
  CHECK(faults.thousandths == kMaxNodeFaults);
  int64_t before = kMaxNodeFaults;
  for (int hour = 0; hour < 24 * 300; ++hour) {
    const int64_t left = FaultsAt(faults, now + kFaultHalfLife + absl::Hours(hour));
    REQUIRE(left <= before);
    before = left;
  }
  CHECK(before == 0);
}

TEST_CASE("a lost node counts once, if it had tasks") {
  for (const NodeLossPolicy policy : {NodeLossPolicy::kReplaceNow, NodeLossPolicy::kKeep}) {
    TestCluster cluster;
    cluster.AddNodes("n", 2, kNode);
    JobShape shape = Workers(2);
    shape.on_node_loss = policy;
    const JobId job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    REQUIRE(cluster.Where(job) == "n1 n1");
    Lose(cluster, "n1");
    Lose(cluster, "n2");
    CHECK(FaultsOf(cluster, "n1") == 1000);
    CHECK(FaultsOf(cluster, "n2") == 0);
    CHECK(cluster.state().faulty_nodes() == 1);
    cluster.Must(NodeSteered{.id = cluster.node_id("n1"), .cordoned = true});
    CHECK(FaultsOf(cluster, "n1") == 1000);
    cluster.Must(NodeSteered{.id = cluster.node_id("n1"), .repaired = true});
    CHECK(FaultsOf(cluster, "n1") == 0);
    CHECK(cluster.state().faulty_nodes() == 0);
  }
}

TEST_CASE("a device that fails under a task counts and an idle one does not") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, kNode);
  const JobId job = cluster.Submit("j", Workers(1));
  cluster.RunAll(job);
  const size_t used = cluster.job(job).tasks[0].devices.Has(0) ? 0 : 1;
  Register(cluster, "n1", {1 - used});
  CHECK(FaultsOf(cluster, "n1") == 0);
  Register(cluster, "n1", {0, 1});
  CHECK(FaultsOf(cluster, "n1") == 1000);
  Register(cluster, "n1", {0, 1});  // still
  CHECK(FaultsOf(cluster, "n1") == 1000);
}

TEST_CASE("refusals count once for each job") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, kNode);
  const auto refuse = [&](int32_t refusals, uint64_t job) {
    cluster.Must(NodeRefused{.id = cluster.node_id("n1"), .refusals = refusals, .job = JobId{job}});
  };
  refuse(1, 7);
  refuse(2, 7);
  CHECK(FaultsOf(cluster, "n1") == 1000);
  refuse(3, 8);
  CHECK(FaultsOf(cluster, "n1") == 2000);
}

TEST_CASE("events of older logs count nothing") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, kNode);
  const JobId job = cluster.Submit("j", Workers(1));
  cluster.RunAll(job);
  cluster.Must(NodeSilenced{.id = cluster.node_id("n1"), .counts_faults = false});
  cluster.Must(NodeFenced{.id = cluster.node_id("n1"), .counts_faults = false});
  CHECK(FaultsOf(cluster, "n1") == 0);
}

// n1 of three nodes has failed; n2 has a task of another job, so it is tighter.
struct WithALemon {
  explicit WithALemon(int32_t min_tasks) : cluster(MakePolicies(min_tasks)) {
    cluster.AddNodes("n", 3, kNode);
    cluster.Must(NodeRefused{.id = cluster.node_id("n1"), .refusals = 1, .job = JobId{99}});
  }
  static Policies MakePolicies(int32_t min_tasks) {
    PolicyConfig config;
    config.reliable_first.min_tasks = min_tasks;
    return *Policies::Create(config);
  }
  std::string Place(int replicas) {
    const JobId job = cluster.Submit("j", Workers(replicas));
    cluster.Cycle();
    return cluster.Where(job);
  }
  TestCluster cluster;
};

TEST_CASE("reliable_first keeps large groups off nodes that failed, if others suffice") {
  CHECK(WithALemon(3).Place(2) == "n1 n1");  // too small
  CHECK(WithALemon(2).Place(2) == "n2 n2");
  CHECK(WithALemon(2).Place(6) == "n2 n2 n3 n3 n1 n1");
  WithALemon past(2);
  past.cluster.Advance(kFaultHalfLife + absl::Hours(1));  // counts less than a half
  CHECK(past.Place(2) == "n1 n1");
  WithALemon repaired(2);
  repaired.cluster.Must(NodeSteered{.id = repaired.cluster.node_id("n1"), .repaired = true});
  CHECK(repaired.Place(2) == "n1 n1");
}

}  // namespace
}  // namespace berth
