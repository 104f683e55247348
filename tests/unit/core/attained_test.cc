// Order by attained service, and rotation.
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

// The job must be stopping; its tasks are reported gone.
void Stopped(TestCluster& cluster, JobId id) {
  cluster.Settle();
  REQUIRE(cluster.Tasks(id) == "L");
  cluster.GoneAll(id);
  cluster.Settle();
}

TEST_CASE("a waiting job replaces a job whose turn is over") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId old = cluster.Submit("old", Gpus(8));
  cluster.RunAll(old);
  cluster.PassTo(cluster.now() + absl::Minutes(7));
  const JobId young = cluster.Submit("young", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(old) == "R");  // 56 min of device time: both are in the first level
  // The waiting job is re-evaluated when the running one reaches the next level, not before.
  CHECK(cluster.Cycle().wake_at <= cluster.now() + absl::Seconds(31));
  cluster.PassTo(cluster.now() + absl::Seconds(31));
  Stopped(cluster, old);
  CHECK(cluster.job(old).status.attained == absl::Minutes(7) + absl::Seconds(31));
  CHECK(cluster.job(old).status.eviction.detail == "it has had its turn (least_attained)");
  cluster.RunAll(young);
  CHECK(cluster.StateOf(young) == "Running");
  CHECK(cluster.StateOf(old) == "Pending");
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a job is rotated only when checkpoints preserve most of its run") {
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
  CHECK(cluster.Tasks(runs) == "R");  // no checkpoint yet
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(20));
  cluster.PassTo(begin + absl::Minutes(26));
  cluster.Settle();
  CHECK(cluster.Tasks(runs) == "R");  // 6 of 26 minutes would be lost
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(40));
  cluster.PassTo(begin + absl::Minutes(40));
  Stopped(cluster, runs);
}

TEST_CASE("a job without checkpoints is not rotated") {
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

TEST_CASE("non-preemptible jobs and jobs of higher priority are not rotated") {
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

TEST_CASE("jobs of the same level do not rotate") {
  TestCluster cluster(*Policies::Create(Rotating("least_attained")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId first = cluster.Submit("first", Gpus(8));
  cluster.RunAll(first);
  cluster.PassTo(cluster.now() + absl::Minutes(10));
  const JobId second = cluster.Submit("second", Gpus(8));
  Stopped(cluster, first);
  cluster.RunAll(second);
  // After the same service, both are in the second level.
  cluster.PassTo(cluster.now() + absl::Minutes(11));
  cluster.Settle();
  CHECK(cluster.Tasks(second) == "R");
  // A new job goes before both; then the job with less service runs.
  const JobId third = cluster.Submit("third", Gpus(8));
  Stopped(cluster, second);
  cluster.RunAll(third);
  cluster.Exit(third, 0);
  cluster.Settle();
  CHECK(cluster.Tasks(first) + cluster.Tasks(second) == "B.");  // the older job of the level
}

TEST_CASE("a stopped job that waits long is promoted to the first level and runs") {
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
  cluster.PassTo(cluster.now() + absl::Minutes(1));  // four times its run time
  Stopped(cluster, second);
  CHECK(cluster.job(first).rank == 1);
  cluster.RunAll(first);
  CHECK(cluster.StateOf(first) == "Running");
  // Only its service since the promotion counts: jobs of the first level do not rotate it yet.
  cluster.PassTo(cluster.now() + absl::Minutes(2));
  cluster.Submit("third", Gpus(8));
  cluster.Settle();
  CHECK(cluster.Tasks(first) == "R");
}

TEST_CASE("attained service is stored: decisions are the same after a restart") {
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

TEST_CASE("smallest area: a job is stopped if the other has at most half the remaining work") {
  TestCluster cluster(*Policies::Create(Rotating("smallest_area")));
  cluster.AddNode("n", {.gpus = 8});
  const JobId runs = cluster.Submit("runs", Gpus(8, absl::Hours(4)));
  cluster.RunAll(runs);
  cluster.PassTo(cluster.now() + absl::Hours(1));
  const JobId near = cluster.Submit("near", Gpus(4, absl::Hours(4)));  // 16 h; 24 h remain
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

TEST_CASE("shortest remaining: compares remaining run time only, less earlier runs") {
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

TEST_CASE("without a job order that supports rotation no job is rotated") {
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
