// Job ranks, ageing, and the recording of runs.
#include <catch2/catch.hpp>

#include "core/engine/explain/explain.h"
#include "core/engine/order/rank_stage.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/model_world.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

PolicyConfig Predicting() {
  PolicyConfig config;
  config.actions = {"allocate", "backfill"};
  config.job_orders = {"shortest_first"};
  config.prediction.enabled = true;
  return config;
}

JobShape Gpus(int gpus, Duration walltime, const std::string& user = "") {
  JobShape shape{.groups = {{.gpus = gpus}}, .walltime = walltime};
  shape.user = user;
  return shape;
}

// The job starts at once, and ends by itself after `run`.
JobId Ran(TestCluster& cluster, const std::string& name, const JobShape& shape, Duration run) {
  const JobId id = cluster.Submit(name, shape);
  cluster.RunAll(id);
  cluster.PassTo(cluster.now() + run);
  cluster.Exit(id, 0);
  return id;
}

TEST_CASE("a run is recorded when it ends, and predicts later jobs") {
  TestCluster cluster(*Policies::Create(Predicting()));
  cluster.AddNode("n", {.gpus = 8});
  const JobId before = cluster.Submit("before", Gpus(9, absl::Hours(10), "ann"));
  Ran(cluster, "past", Gpus(8, absl::Hours(10), "ann"), absl::Seconds(50));
  REQUIRE(cluster.state().run_history().size() == 1);
  cluster.state().run_history().ForEach([&](RunId id, const FinishedRun& run) {
    CHECK(id == RunId{1});
    CHECK(run.user == "ann");
    CHECK(run.request == RunRequest{36000, 8000, 1000});
    CHECK(run.run_ms == 50'000);
  });
  const JobId after = cluster.Submit("after", Gpus(8, absl::Hours(10), "ann"));
  CHECK(cluster.job(after).prediction == RunPrediction{50, 50, 50, 50});
  CHECK_FALSE(cluster.job(before).prediction.Known());  // fixed when it was submitted
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("nothing is recorded without predictions, nor for jobs that never ran") {
  PolicyConfig config = Predicting();
  TestCluster on(*Policies::Create(config));
  on.AddNode("n", {.gpus = 8});
  const JobId waits = on.Submit("waits", Gpus(9, absl::Hours(1)));
  on.Settle();
  on.Must(JobCancelled{.id = waits});
  on.Settle();
  CHECK(on.StateOf(waits) == "Cancelled");
  CHECK(on.state().run_history().size() == 0);
  CHECK_FALSE(on.Try(JobRunRecorded{waits}).ok());
  CHECK_FALSE(on.Try(JobRunRecorded{JobId{99}}).ok());
  const JobId runs = on.Submit("runs", Gpus(1, absl::Hours(1)));
  on.RunAll(runs);
  CHECK_FALSE(on.Try(JobRunRecorded{runs}).ok());

  config.prediction.enabled = false;
  TestCluster off(*Policies::Create(config));
  off.AddNode("n", {.gpus = 8});
  Ran(off, "past", Gpus(8, absl::Hours(10)), absl::Seconds(50));
  CHECK(off.state().run_history().size() == 0);
}

TEST_CASE("a cancelled job that ran is recorded for as long as it ran") {
  TestCluster cluster(*Policies::Create(Predicting()));
  cluster.AddNode("n", {.gpus = 8});
  const JobId id = cluster.Submit("j", Gpus(1, absl::Hours(1)));
  cluster.RunAll(id);
  cluster.PassTo(cluster.now() + absl::Seconds(7));
  cluster.Must(JobCancelled{.id = id});
  cluster.Settle();
  cluster.GoneAll(id);
  CHECK(cluster.StateOf(id) == "Cancelled");
  REQUIRE(cluster.state().run_history().Find(RunId{1}) != nullptr);
  CHECK(cluster.state().run_history().Find(RunId{1})->run_ms == 7000);
}

TEST_CASE("the rank is the weighted logarithm of requested and predicted run time") {
  PolicyConfig config = Predicting();
  config.shortest_first.requested_weight = 500;
  config.shortest_first.expected_weight = 250;
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  Ran(cluster, "past", Gpus(8, absl::Seconds(1024), "ann"), absl::Seconds(64));
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Hours(1))));
  const JobId known = cluster.Submit("known", Gpus(8, absl::Seconds(1024), "ann"));
  cluster.Settle();
  // 0.5 * 10 + 0.25 * 6 + 0.25 * 6
  CHECK(cluster.job(known).rank == 8 * 1000 * (int64_t{1} << 16));
}

TEST_CASE("ranks are the same after a restart, and so are decisions") {
  TestCluster cluster(*Policies::Create(Predicting()));
  cluster.AddNode("n", {.gpus = 8});
  Ran(cluster, "past", Gpus(8, absl::Hours(10), "ann"), absl::Seconds(50));
  Ran(cluster, "other", Gpus(2, absl::Hours(1), "bob"), absl::Minutes(40));
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Hours(1), "cyd")));
  for (int i = 0; i < 12; ++i) {
    cluster.Submit(absl::StrCat("j", i),
                   Gpus(1 + i % 8, absl::Minutes(10 + 7 * (i % 5)), i % 3 == 0 ? "ann" : "bob"));
  }
  cluster.Settle();
  ClusterState loaded = Reload(cluster.state());
  CHECK(Fingerprint(loaded) == Fingerprint(cluster.state()));
  CHECK(loaded.run_history().SameAs(cluster.state().run_history()));
  PlanCycle(loaded, cluster.policies(), cluster.now(), TestCluster::kNoBudget);
  int ranked = 0;
  loaded.jobs().ForEach([&](JobId id, const Job& job) {
    if (Ended(job.status.state)) return;
    CHECK(job.rank == cluster.job(id).rank);
    ranked += job.rank != 0 ? 1 : 0;
  });
  CHECK(ranked >= 12);
  CHECK(CheckConsistency(loaded).ok());
}

TEST_CASE("planning wakes at the moment a job ages") {
  PolicyConfig config = Predicting();
  config.shortest_first.age = absl::Minutes(30);
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  const Time begin = cluster.now();
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::InfiniteDuration())));
  const JobId old = cluster.Submit("old", Gpus(8, absl::Hours(9)));
  cluster.Settle();
  cluster.PassTo(begin + absl::Minutes(10));
  const JobId young = cluster.Submit("young", Gpus(8, absl::Hours(1)));
  cluster.Settle();
  CHECK(KeyOf(cluster.job(young)) < KeyOf(cluster.job(old)));
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(30));
  cluster.PassTo(begin + absl::Minutes(30));
  cluster.Settle();
  CHECK(cluster.job(old).rank == kAgedRank);
  CHECK(KeyOf(cluster.job(old)) < KeyOf(cluster.job(young)));
  CHECK(cluster.Cycle().wake_at == begin + absl::Minutes(40));
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("other policies restore order by age, and ranks return with the policy") {
  TestCluster cluster(*Policies::Create(Predicting()));
  cluster.AddNode("n", {.gpus = 8});
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Hours(1))));
  const JobId first = cluster.Submit("first", Gpus(8, absl::Hours(9)));
  const JobId second = cluster.Submit("second", Gpus(8, absl::Hours(1)));
  cluster.Settle();
  CHECK(KeyOf(cluster.job(second)) < KeyOf(cluster.job(first)));
  const auto plan_with = [&](const Policies& policies) {
    StateEditor(cluster.state()).ForgetVerdicts();
    PlanCycle(cluster.state(), policies, cluster.now(), TestCluster::kNoBudget);
  };
  plan_with(Policies::Default());
  CHECK(cluster.job(first).rank == 0);
  CHECK(cluster.job(second).rank == 0);
  CHECK(cluster.state().ageing().empty());
  plan_with(cluster.policies());
  CHECK(KeyOf(cluster.job(second)) < KeyOf(cluster.job(first)));
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a total order before shortest_first leaves ranks unused") {
  PolicyConfig config = Predicting();
  config.job_orders = {"priority_then_submit", "shortest_first"};
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  cluster.RunAll(cluster.Submit("full", Gpus(8, absl::Hours(1))));
  const JobId first = cluster.Submit("first", Gpus(8, absl::Hours(9)));
  cluster.Submit("second", Gpus(8, absl::Hours(1)));
  cluster.Settle();
  CHECK(cluster.job(first).rank == 0);
}

TEST_CASE("estimate: from the expected run times of running jobs and of jobs ahead") {
  PolicyConfig config = Predicting();
  config.job_orders = {"priority_then_submit"};
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.gpus = 8});
  Ran(cluster, "past", Gpus(8, absl::Hours(10), "ann"), absl::Minutes(16));
  cluster.RunAll(cluster.Submit("runs", Gpus(8, absl::Hours(10), "ann")));
  cluster.Submit("before", Gpus(8, absl::Hours(10), "ann"));
  const JobId job = cluster.Submit("job", Gpus(8, absl::Hours(1), "bob"));
  cluster.Settle();
  const uint64_t facts = Fingerprint(cluster.state());
  const StartEstimate estimate =
      EstimateStart(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(estimate.predicted);
  CHECK(estimate.history_jobs == 1);
  CHECK(estimate.jobs_before == 1);
  CHECK(estimate.latest == cluster.now() + absl::Hours(20));
  // 960 s each, which is one of the steps.
  CHECK(estimate.likely == cluster.now() + absl::Seconds(2 * 960));
  CHECK(estimate.earliest == estimate.likely);
  CHECK(Fingerprint(cluster.state()) == facts);
  CHECK(CheckConsistency(cluster.state()).ok());
}

}  // namespace
}  // namespace berth
