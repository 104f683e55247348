// The action migrate: the place first, then the move.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/fabric.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::Gang;
using testing::JobShape;
using testing::kSecond;
using testing::PoliciesWith;
using testing::Soft;
using testing::TestCluster;

constexpr Duration kDeadline = absl::Hours(2);

Policies Migrating(int max_jobs = 1) {
  PolicyConfig config;
  config.actions = {"allocate", "migrate"};
  config.migration.max_jobs = max_jobs;
  return *Policies::Create(config);
}

void DrainWhenPlaced(TestCluster& cluster, const std::string& name,
                     Duration deadline = absl::InfiniteDuration()) {
  cluster.Must(NodeSteered{.id = cluster.node_id(name),
                           .cordoned = true,
                           .draining = true,
                           .reason = "test",
                           .drain = {.mode = DrainMode::kWhenPlaced,
                                     .begin = cluster.now(),
                                     .deadline = cluster.now() + deadline}});
  cluster.Settle();
}

// A gang of whole nodes n1..n3.
struct OnNodes {
  explicit OnNodes(JobShape shape = Gang(3)) {
    cluster.AddNodes("n", 3);
    job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    REQUIRE(cluster.Where(job) == "n1 n2 n3");
  }
  void Move() {
    cluster.GoneAll(job);
    cluster.RunAll(job);
  }

  TestCluster cluster{Migrating()};
  JobId job;
};

TEST_CASE("migrate: a gang leaves a draining node once there is another, and keeps the rest") {
  OnNodes run;
  DrainWhenPlaced(run.cluster, "n2");
  CHECK(run.cluster.Tasks(run.job) == "RRR");
  run.cluster.Advance(absl::Hours(1));
  CHECK(run.cluster.Tasks(run.job) == "RRR");
  run.cluster.AddNode("n4");
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "LLL");
  CHECK(run.cluster.status(run.job).message == "worker-1 had to leave n2; there is another place");
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(run.cluster.job(run.job).tasks[i].moves);
    CHECK(run.cluster.job(run.job).tasks[i].released == ReleaseReason::kDrain);
  }
  run.Move();
  CHECK(run.cluster.StateOf(run.job) == "Running");
  CHECK(run.cluster.Where(run.job) == "n1 n4 n3");
  CHECK(run.cluster.status(run.job).retries == 0);
  CHECK(CheckConsistency(run.cluster.state()).ok());
}

TEST_CASE("migrate: nobody else gets the place that was found") {
  OnNodes run;
  DrainWhenPlaced(run.cluster, "n2");
  run.cluster.AddNode("n4");
  run.cluster.Settle();
  const JobId other = run.cluster.Submit("other", Gang(1));
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(other) == "Pending");
  run.Move();
  CHECK(run.cluster.Where(run.job) == "n1 n4 n3");
}

TEST_CASE("migrate: what has no other place stays until the deadline") {
  OnNodes run;
  DrainWhenPlaced(run.cluster, "n2", kDeadline);
  run.cluster.Advance(kDeadline - kSecond);
  CHECK(run.cluster.Tasks(run.job) == "RRR");
  run.cluster.Advance(kSecond);
  CHECK(run.cluster.Tasks(run.job) == "LLL");
}

TEST_CASE("migrate: a task that the others do not need moves alone") {
  JobShape shape = Gang(3);
  shape.groups[0].membership = GangMembership::kIndependent;
  OnNodes run(shape);
  DrainWhenPlaced(run.cluster, "n2");
  run.cluster.AddNode("n4");
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RLR");
  run.Move();
  CHECK(run.cluster.Where(run.job) == "n1 n4 n3");
  CHECK(run.cluster.Tasks(run.job) == "RRR");
}

TEST_CASE("migrate: a spare leaves without another place, and its gang goes on") {
  Fabric fabric{Migrating()};
  fabric.AddRacks(1, 3, {.gpus = 4});
  JobSpec spec =
      fabric.SpecOfShape("j", {.groups = {{.name = "w", .replicas = 2, .gpus = 4},
                                          {.name = "w-spares", .gpus = 4, .spare_of = 0}}});
  spec.topology = Soft("rack");
  const JobId job = fabric.SubmitSpec(std::move(spec));
  for (int i = 0; i < 2; ++i) fabric.RunAll(job);
  REQUIRE(fabric.Tasks(job) == "RRP");
  DrainWhenPlaced(fabric, fabric.state().nodes().At(fabric.job(job).tasks[2].node).spec.name);
  CHECK(fabric.Tasks(job) == "RRL");
}

TEST_CASE("migrate: only so many jobs leave at a time") {
  TestCluster cluster(Migrating());
  cluster.AddNode("n1");
  JobShape small = Gang(1);
  small.groups[0].cpu = 10;
  const JobId a = cluster.Submit("a", small), b = cluster.Submit("b", small);
  cluster.RunAll(a);
  cluster.RunAll(b);
  cluster.AddNode("n2");
  DrainWhenPlaced(cluster, "n1");
  CHECK(cluster.Tasks(a) == "L");
  CHECK(cluster.Tasks(b) == "R");
  cluster.GoneAll(a);
  CHECK(cluster.Tasks(b) == "L");
  cluster.RunAll(a);
  cluster.GoneAll(b);
  cluster.RunAll(b);
  CHECK(cluster.Where(a) == "n2");
  CHECK(cluster.Where(b) == "n2");
}

TEST_CASE("migrate: a job of a closed queue, which could not start again, stays") {
  OnNodes run;
  run.cluster.Must(QueueOpened{.id = run.cluster.queue_id("default"), .open = false});
  DrainWhenPlaced(run.cluster, "n2");
  run.cluster.AddNode("n4");
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "RRR");
}

TEST_CASE("migrate: without the action, or with none allowed, such a drain waits") {
  const bool action = GENERATE(true, false);
  TestCluster cluster(action ? Migrating(0) : PoliciesWith({"allocate"}));
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.RunAll(job);
  cluster.AddNode("n2");
  DrainWhenPlaced(cluster, "n1", kDeadline);
  CHECK(cluster.Tasks(job) == "R");
  cluster.Advance(kDeadline);
  CHECK(cluster.Tasks(job) == "L");
}

// ---- Degraded domains

// 2 racks of 2 nodes of 4 GPUs; a gang of whole nodes on the first.
struct OnRack {
  explicit OnRack(bool may_migrate = true, Duration walltime = absl::Hours(100)) {
    fabric.AddRacks(2, 2, {.gpus = 4});
    job = fabric.Ask("j", Soft("rack"), {.replicas = 2, .gpus = 4},
                     {.walltime = walltime, .may_migrate = may_migrate});
    fabric.RunAll(job);
    rack = fabric.Racks(job);
    REQUIRE(fabric.Tasks(job) == "RR");
  }

  Fabric fabric{Migrating()};
  JobId job;
  std::string rack;
};

TEST_CASE("migrate: a job leaves a degraded rack") {
  OnRack run;
  run.fabric.Advance(absl::Hours(1));
  run.fabric.SetHealth(run.rack, DomainHealth::kDegraded);
  run.fabric.Settle();
  CHECK(run.fabric.Tasks(run.job) == "LL");
  CHECK(run.fabric.status(run.job).message ==
        "had to leave HyperNode " + run.rack + ", which is degraded; there are other places");
  run.fabric.GoneAll(run.job);
  run.fabric.RunAll(run.job);
  CHECK(run.fabric.Tasks(run.job) == "RR");
  CHECK(run.fabric.Racks(run.job) != run.rack);

  // The other rack is degraded now, and the first is well: not before the job has run for a while.
  run.fabric.SetHealth(run.fabric.Racks(run.job), DomainHealth::kDegraded);
  run.fabric.SetHealth(run.rack, DomainHealth::kOk);
  run.fabric.Settle();
  CHECK(run.fabric.Tasks(run.job) == "RR");
  run.fabric.Advance(absl::Minutes(30));
  CHECK(run.fabric.Tasks(run.job) == "LL");
}

TEST_CASE("migrate: a job stays in a degraded rack if it must, or if leaving costs more") {
  SECTION("it may not be moved") {
    OnRack run(/*may_migrate=*/false);
    run.fabric.Advance(absl::Hours(1));
    run.fabric.SetHealth(run.rack, DomainHealth::kDegraded);
    run.fabric.Settle();
    CHECK(run.fabric.Tasks(run.job) == "RR");
  }
  SECTION("it has lost more work by then than it would win") {
    OnRack run(true, absl::Hours(6));  // 5 h left, of which a fifth is an hour
    run.fabric.Advance(absl::Hours(1));
    run.fabric.SetHealth(run.rack, DomainHealth::kDegraded);
    run.fabric.Settle();
    CHECK(run.fabric.Tasks(run.job) == "RR");
  }
  SECTION("there is no other place") {
    OnRack run;
    run.fabric.Advance(absl::Hours(1));
    run.fabric.Occupy(run.rack == "r1" ? "r2n1" : "r1n1", 4);
    run.fabric.SetHealth(run.rack, DomainHealth::kDegraded);
    run.fabric.Settle();
    CHECK(run.fabric.Tasks(run.job) == "RR");
  }
}

}  // namespace
}  // namespace berth
