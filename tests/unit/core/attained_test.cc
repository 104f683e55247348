// Orders by service, and rotation.
#include <catch2/catch.hpp>

#include "core/model/state_editor.h"
#include "tests/unit/core/model_world.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

PolicyConfig Rotating(const std::string& order) {
  PolicyConfig config;
  config.actions = {"allocate", "backfill", "rotate"};
  config.job_orders = {order};
  config.least_attained.levels = {absl::Hours(1), absl::Hours(8)};
  config.least_attained.promote_after = 4;
  config.shortest_first.overtaking = 0;
  return config;
}

JobShape Gpus(int gpus, Duration walltime = absl::InfiniteDuration()) {
  JobShape shape{.groups = {{.gpus = gpus}}, .walltime = walltime};
  shape.preemptible = true;
  shape.checkpoint_interval = absl::Minutes(1);
  return shape;
}

// It is told to stop, and is gone.
void Stopped(TestCluster& cluster, JobId id) {
  cluster.Settle();
  REQUIRE(cluster.Tasks(id) == "L");
  cluster.GoneAll(id);
  cluster.Settle();
}

TEST_CASE("a new job takes the room of one that has had its turn") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId old = cluster.Submit("old", Gpus(8));
  cluster.RunAll(old);
  cluster.PassTo(cluster.now() + absl::Minutes(7));
  const JobId young = cluster.Submit("young", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(old) == "R");  // 56 min of device time: both are in the first level
  // It is looked at again when the other one reaches the next level, and not before.
  CHECK(cluster.Cycle().wake_at <= cluster.now() + absl::Seconds(31));
  cluster.PassTo(cluster.now() + absl::Seconds(31));
  Stopped(cluster, old);
  CHECK(cluster.job(old).status.attained == absl::Minutes(7) + absl::Seconds(31));
  CHECK(cluster.job(old).status.eviction.detail == "it has had its turn, by least_attained");
  cluster.RunAll(young);
  CHECK(cluster.StateOf(young) == "Running");
  CHECK(cluster.StateOf(old) == "Pending");
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a job gives way only when most of what it ran is kept") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const Time begin = cluster.now();
  JobShape shape = Gpus(8);
  shape.checkpoint_interval = absl::Minutes(20);
  const JobId runs = cluster.Submit("runs", shape);
  cluster.RunAll(runs);
  cluster.PassTo(begin + absl::Minutes(19));
  cluster.Submit("waits", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");  // nothing is kept yet
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(20));
  cluster.PassTo(begin + absl::Minutes(26));
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");  // 6 of 26 minutes would be lost
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(40));
  cluster.PassTo(begin + absl::Minutes(40));
  Stopped(cluster, runs);
}

TEST_CASE("a job that makes no checkpoints is not rotated") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  JobShape shape = Gpus(8);
  shape.checkpoint_interval = absl::InfiniteDuration();
  const JobId runs = cluster.Submit("runs", shape);
  cluster.RunAll(runs);
  cluster.PassTo(cluster.now() + absl::Hours(20));
  cluster.Submit("waits", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");
}

TEST_CASE("who cannot be preempted, and who is more important, stays") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNodes("n", 2, {.gpus = 8});
  JobShape firm = Gpus(8);
  firm.preemptible = false;
  JobShape important = Gpus(8);
  important.priority = 1;
  const JobId a = cluster.Submit("firm", firm), b = cluster.Submit("important", important);
  cluster.RunAll(a);
  cluster.RunAll(b);
  cluster.PassTo(cluster.now() + absl::Hours(5));
  const JobId waits = cluster.Submit("waits", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(a) + cluster.Tasks(b) + cluster.Tasks(waits) == "RR.");
}

TEST_CASE("jobs of one level do not take turns") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId first = cluster.Submit("first", Gpus(8));
  cluster.RunAll(first);
  cluster.PassTo(cluster.now() + absl::Minutes(10));
  const JobId second = cluster.Submit("second", Gpus(8));
  Stopped(cluster, first);
  cluster.RunAll(second);
  // After as long, both are in the second level.
  cluster.PassTo(cluster.now() + absl::Minutes(11));
  cluster.Settle();
  CHECK(cluster.Tasks(second) == "R");
  // One that comes now goes before both, and then the one that has had less goes on.
  const JobId third = cluster.Submit("third", Gpus(8));
  Stopped(cluster, second);
  cluster.RunAll(third);
  cluster.Exit(third, 0);
  cluster.Settle();
  CHECK(cluster.Tasks(first) + cluster.Tasks(second) == "B.");  // the older of one level
}

TEST_CASE("who was stopped and waits for long is in the first level again, and has a turn") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId first = cluster.Submit("first", Gpus(8));
  cluster.RunAll(first);
  cluster.PassTo(cluster.now() + absl::Minutes(10));
  const JobId second = cluster.Submit("second", Gpus(8));
  Stopped(cluster, first);
  cluster.RunAll(second);
  CHECK(cluster.job(first).rank == 2);
  cluster.PassTo(cluster.now() + absl::Minutes(39));
  cluster.Settle();
  CHECK(cluster.Tasks(second) == "R");
  cluster.PassTo(cluster.now() + absl::Minutes(1));  // four times as long as it has run
  Stopped(cluster, second);
  CHECK(cluster.job(first).rank == 1);
  cluster.RunAll(first);
  CHECK(cluster.StateOf(first) == "Running");
  // By what it has had since: nobody of the first level takes its room at once.
  cluster.PassTo(cluster.now() + absl::Minutes(2));
  cluster.Submit("third", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(first) == "R");
}

TEST_CASE("attained service is a fact: a restart decides the same") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId first = cluster.Submit("first", Gpus(8));
  cluster.RunAll(first);
  cluster.PassTo(cluster.now() + absl::Minutes(10));
  cluster.RunAll(cluster.Submit("second", Gpus(8)));
  Stopped(cluster, first);
  ClusterState loaded = Reload(cluster.state());
  CHECK(Fingerprint(loaded) == Fingerprint(cluster.state()));
  CHECK(loaded.jobs().At(first).status.attained == absl::Minutes(10));
  PlanCycle(loaded, cluster.policies(), cluster.now(), TestCluster::kNoBudget);
  CHECK(loaded.jobs().At(first).rank == cluster.job(first).rank);
  CHECK(loaded.ageing() == cluster.state().ageing());
}

TEST_CASE("smallest area: half of what is left, and no less, is worth a stop") {
  TestCluster cluster(*Policies::Create(Rotating("smallest_area")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId runs = cluster.Submit("runs", Gpus(8, absl::Hours(4)));
  cluster.RunAll(runs);
  cluster.PassTo(cluster.now() + absl::Hours(1));
  const JobId near = cluster.Submit("near", Gpus(4, absl::Hours(4)));  // 16 h, 24 h are left
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");
  const JobId small = cluster.Submit("small", Gpus(4, absl::Hours(3)));  // 12 h
  Stopped(cluster, runs);
  cluster.RunAll(small);
  cluster.RunAll(near);
  CHECK(cluster.StateOf(small) == "Running");
  CHECK(cluster.job(runs).status.attained == absl::Hours(1));
  CHECK(cluster.job(runs).rank < cluster.job(near).rank + 2 * kRankOctave);
}

TEST_CASE("shortest remaining: by run time alone, what has run before counted") {
  PolicyConfig config = Rotating("shortest_remaining");
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  const JobId runs = cluster.Submit("runs", Gpus(8, absl::Hours(5)));
  cluster.RunAll(runs);
  cluster.PassTo(cluster.now() + absl::Minutes(10));
  const JobId wide = cluster.Submit("wide", Gpus(8, absl::Seconds(7200)));
  const JobId narrow = cluster.Submit("narrow", Gpus(1, absl::Seconds(7201)));
  const JobId unknown = cluster.Submit("unknown", Gpus(1));
  Stopped(cluster, runs);
  CHECK(cluster.Tasks(wide) == "B");
  CHECK(KeyOf(cluster.job(narrow)) < KeyOf(cluster.job(runs)));
  CHECK(KeyOf(cluster.job(runs)) < KeyOf(cluster.job(unknown)));
}

TEST_CASE("without an order that says how jobs stand to each other nobody is rotated") {
  PolicyConfig config = Rotating("shortest_first");
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  const JobId runs = cluster.Submit("runs", Gpus(8, absl::Hours(40)));
  cluster.RunAll(runs);
  cluster.PassTo(cluster.now() + absl::Hours(1));
  cluster.Submit("short", Gpus(8, absl::Minutes(1)));
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");
}

}  // namespace
}  // namespace berth
