// The line of a queue, and how far its jobs are overtaken.
#include "core/model/line.h"

#include <catch2/catch.hpp>

#include "core/engine/order/line_levels.h"
#include "core/engine/order/rank_stage.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/model_world.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

PolicyConfig ShortestFirst(int32_t overtaking = 50) {
  PolicyConfig config;
  config.actions = {"allocate", "backfill"};
  config.job_orders = {"shortest_first"};
  config.shortest_first.overtaking = overtaking;
  return config;
}

JobShape Gpus(int gpus, Duration walltime) {
  return {.groups = {{.gpus = gpus}}, .walltime = walltime};
}

// Seconds of the whole cluster, as work.
int64_t Whole(int64_t seconds) { return seconds * 1'000'000; }

const Queue& QueueOf(const TestCluster& cluster) { return *cluster.state().FindQueue("default"); }

TEST_CASE("work is the expected run times the dominant share of the cluster") {
  TestCluster cluster(*Policies::Create(ShortestFirst()));
  cluster.AddNode("n", {.cpu = 64, .gpus = 8});
  const auto work = [&](const std::string& name, const JobShape& shape) {
    return cluster.job(cluster.Submit(name, shape)).line.work;
  };
  CHECK(work("half", Gpus(4, absl::Seconds(100))) == Whole(100) / 2);
  CHECK(work("cpu", {.groups = {{.cpu = 16, .gpus = 1}}, .walltime = absl::Seconds(8)}) ==
        Whole(2));
  CHECK(work("unknown", Gpus(8, absl::InfiniteDuration())) == Whole(3600));
  CHECK(work("endless", Gpus(8, absl::Hours(10'000))) == kMaxWork);
  CHECK(work("too much", Gpus(80, absl::Seconds(5))) == Whole(5));
  CHECK(work("nothing", {.groups = {{.cpu = 0}}, .walltime = absl::Milliseconds(1)}) == 1);
}

TEST_CASE("a job is overtaken by later jobs that have left the line") {
  TestCluster cluster(*Policies::Create(ShortestFirst(/*overtaking=*/0)));
  cluster.AddNode("n", {.gpus = 8});
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Seconds(50))));
  const JobId long_job = cluster.Submit("long", Gpus(8, absl::Seconds(1000)));
  cluster.Settle();
  CHECK(Overtaken(QueueOf(cluster), cluster.job(long_job)) == 0);
  const JobId other = cluster.Submit("other", Gpus(8, absl::Seconds(300)));
  CHECK(Overtaken(QueueOf(cluster), cluster.job(long_job)) == 0);
  CHECK(Overtaken(QueueOf(cluster), cluster.job(other)) == -Whole(1000));
  CHECK(QueueOf(cluster).longest_line == Whole(1300));
  cluster.Must(JobCancelled{.id = other});
  cluster.Settle();
  CHECK(Overtaken(QueueOf(cluster), cluster.job(long_job)) == Whole(300));
  CHECK(QueueOf(cluster).line_waits == Whole(1000));
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("the longest line decays as jobs arrive") {
  TestCluster cluster(*Policies::Create(ShortestFirst()));
  cluster.AddNode("n", {.gpus = 8});
  cluster.Submit("large", Gpus(8, absl::Seconds(3000)));
  cluster.Settle();
  const int64_t before = QueueOf(cluster).longest_line;
  CHECK(before == Whole(3000));
  cluster.Submit("small", Gpus(8, absl::Seconds(300)));
  CHECK(QueueOf(cluster).longest_line == before - Whole(300) / kLineMemory);
}

TEST_CASE("a held job joins the line when it is released") {
  TestCluster cluster(*Policies::Create(ShortestFirst()));
  cluster.AddNode("n", {.gpus = 8});
  JobShape held = Gpus(8, absl::Seconds(100));
  held.suspended = true;
  const JobId id = cluster.Submit("held", held);
  cluster.Settle();
  CHECK(cluster.StateOf(id) == "Held");
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Seconds(500))));
  CHECK(WorkBefore(cluster.job(id)) == 0);
  cluster.Must(JobSuspended{.id = id, .suspended = false});
  cluster.Settle();
  CHECK(cluster.StateOf(id) == "Pending");
  CHECK(WorkBefore(cluster.job(id)) == Whole(600));
  CHECK(LineLevelOf(QueueOf(cluster), cluster.job(id), 50) == 0);
}

TEST_CASE("levels follow how far a job was overtaken, and the last level goes first") {
  Queue queue;
  Job job;
  queue.longest_line = 1000;
  const auto level = [&](int64_t overtaken) {
    queue.line = overtaken;
    return LineLevelOf(queue, job, 50);
  };
  CHECK(level(-5) == 0);
  CHECK(level(49) == 0);
  CHECK(level(50) == 1);
  CHECK(level(120) == 2);
  CHECK(level(299) == 5);
  CHECK(level(300) == kLineLevels);
  CHECK(level(int64_t{1} << 62) == kLineLevels);
}

// One job of ten hours among a steady stream of shorter ones.
TEST_CASE("a long job is overtaken only up to the limit") {
  TestCluster cluster(*Policies::Create(ShortestFirst()));
  cluster.AddNode("n", {.gpus = 8});
  JobId running = cluster.Submit("s0", Gpus(8, absl::Hours(1)));
  cluster.RunAll(running);
  const JobId long_job = cluster.Submit("long", Gpus(8, absl::Hours(10)));
  int passed = 0;
  for (int i = 1; i < 40 && cluster.job(long_job).status.starts == 0; ++i, ++passed) {
    const JobId next = cluster.Submit(absl::StrCat("s", i), Gpus(8, absl::Hours(1)));
    cluster.Settle();
    cluster.PassTo(cluster.now() + absl::Minutes(59));
    cluster.Exit(running, 0);
    if (cluster.job(long_job).status.starts == 0) cluster.RunAll(next);
    running = next;
  }
  // 5 % of a line of 11 h is half an hour: after three hours it counts as 10 h / 2^5.
  CHECK(passed >= 2);
  CHECK(passed <= 4);
}

TEST_CASE("without walltimes and predictions jobs are ordered by age") {
  TestCluster cluster(*Policies::Create(ShortestFirst()));
  cluster.AddNode("n", {.gpus = 8});
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::InfiniteDuration())));
  const JobId first = cluster.Submit("first", Gpus(8, absl::InfiniteDuration()));
  const JobId second = cluster.Submit("second", Gpus(8, absl::InfiniteDuration()));
  const JobId known = cluster.Submit("known", Gpus(8, absl::Hours(1)));
  cluster.Settle();
  CHECK(KeyOf(cluster.job(first)) < KeyOf(cluster.job(second)));
  CHECK(KeyOf(cluster.job(known)) < KeyOf(cluster.job(first)));
}

// Whatever happens, every rank equals that after a restart.
TEST_CASE("ranks of overtaken jobs are the same after a restart") {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    TestCluster cluster(*Policies::Create(ShortestFirst()));
    cluster.AddNodes("n", 2, {.gpus = 8});
    std::vector<JobId> jobs;
    int raised = 0;
    for (int i = 0; i < 150; ++i) {
      JobShape shape = Gpus(dice.Between(1, 8), absl::Minutes(dice.Between(1, 600)));
      shape.queue = dice.Chance(70) ? "a" : "b";
      shape.suspended = dice.Chance(10);
      jobs.push_back(cluster.Submit(absl::StrCat("j", i), shape));
      const JobId some = jobs[static_cast<size_t>(dice.Below(static_cast<int>(jobs.size())))];
      const bool active = !Ended(cluster.job(some).status.state);
      if (active && dice.Chance(10)) cluster.Must(JobCancelled{.id = some});
      if (active && dice.Chance(20)) {
        cluster.Must(JobSuspended{.id = some, .suspended = dice.Chance(50)});
      }
      cluster.PassTo(cluster.now() + absl::Minutes(dice.Between(0, 60)));
      cluster.Settle();
      for (const JobId id : jobs) {
        if (cluster.StateOf(id) == "Binding") cluster.RunAll(id);
        if (cluster.StateOf(id) == "Running" && dice.Chance(25)) cluster.Exit(id, 0);
        cluster.GoneAll(id);
      }
      if (i % 10 != 9) continue;
      ClusterState loaded = Reload(cluster.state());
      REQUIRE(Fingerprint(loaded) == Fingerprint(cluster.state()));
      PlanCycle(loaded, cluster.policies(), cluster.now(), TestCluster::kNoBudget);
      PlanCycle(cluster.state(), cluster.policies(), cluster.now(), TestCluster::kNoBudget);
      for (const JobId id : jobs) {
        const Job& job = cluster.job(id);
        if (Ended(job.status.state)) continue;
        INFO(job.name);
        REQUIRE(job.rank == loaded.jobs().At(id).rank);
        const int level = LineLevelOf(cluster.state().queues().At(job.queue), job, 50);
        if (level > 0) ++raised;
        REQUIRE((job.rank == kAgedRank) == (level == kLineLevels));
      }
      REQUIRE(CheckConsistency(cluster.state()).ok());
    }
    CHECK(raised > 10);  // otherwise the test proves little
  }
}

}  // namespace
}  // namespace berth
