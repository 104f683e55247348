// Tables for the lifecycle stage: reactions to reports, requests and time.
#include <catch2/catch.hpp>

#include "core/engine/lifecycle/requeue.h"
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

// ---- Starting

TEST_CASE("a gang starts when all members are prepared, and runs when all run") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(3));
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "BBB");
  cluster.Report(job, 0, ReportState::kPrepared);
  cluster.Report(job, 2, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "PBP");
  cluster.Report(job, 1, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "SSS");
  cluster.Report(job, 0, ReportState::kRunning);
  cluster.Report(job, 1, ReportState::kRunning);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Binding");
  cluster.Report(job, 2, ReportState::kRunning);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Running");
  CHECK(cluster.status(job).start == cluster.now());
}

TEST_CASE("growth tasks start independently") {
  Running run({.groups = {{.replicas = 3, .min_available = 1, .cpu = 40}}}, 2);
  CHECK(run.Tasks() == "RR.");
  run.cluster.AddNode("n9");
  run.cluster.Settle();
  CHECK(run.Tasks() == "RRB");
  run.cluster.PrepareAll(run.job);
  CHECK(run.Tasks() == "RRS");
}

TEST_CASE("a refusal requeues the gang without a retry, and its node backs off") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(2));
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1 n2");
  cluster.Report(job, 0, ReportState::kPrepared);
  cluster.Report(job, 1, ReportState::kRefused);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Restarting");
  CHECK(cluster.Tasks(job) == "L.");
  CHECK(cluster.status(job).message == "worker-1: its start was refused (refused by n2)");
  cluster.GoneAll(job);
  CHECK(cluster.StateOf(job) == "Binding");
  CHECK(cluster.Where(job) == "n1 n3");
  CHECK(cluster.status(job).retries == 0);
  CHECK(cluster.status(job).starts == 2);
  CHECK(cluster.node("n2").status.refusals == 1);
  CHECK(cluster.node("n2").status.backoff_until == cluster.now() + kSecond);
}

TEST_CASE("a member that is not prepared in time blames its node") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(2));
  cluster.Settle();
  cluster.Report(job, 0, ReportState::kPrepared);
  cluster.Settle();
  cluster.Advance(absl::Seconds(59));
  CHECK(cluster.Tasks(job) == "PB");
  cluster.Advance(kSecond);
  CHECK(cluster.Tasks(job) == "LL");
  CHECK(cluster.node("n2").status.refusals == 1);
  CHECK(cluster.node("n1").status.refusals == 0);
  cluster.GoneAll(job);
  CHECK(cluster.Where(job) == "n1 n3");
}

TEST_CASE("a refused growth task does not affect the other tasks") {
  Running run({.groups = {{.replicas = 2, .min_available = 1, .cpu = 40}}}, 1);
  run.cluster.AddNodes("m", 1);
  run.cluster.Settle();
  REQUIRE(run.Tasks() == "RB");
  run.cluster.Report(run.job, 1, ReportState::kRefused);
  run.cluster.Settle();
  CHECK(run.Tasks() == "R.");
  CHECK(run.State() == "Running");
  run.cluster.Advance(kSecond);
  CHECK(run.Tasks() == "RB");
}

// ---- Ending

TEST_CASE("all tasks succeeded: the job succeeded") {
  Running run(Gang(2));
  run.cluster.Exit(run.job, 1);
  CHECK(run.State() == "Running");
  run.cluster.Exit(run.job, 0);
  CHECK(run.State() == "Succeeded");
  CHECK(run.cluster.status(run.job).end == run.cluster.now());
  CHECK(run.cluster.Settle().empty());
}

TEST_CASE("a failure without retries fails the job once the other tasks are gone") {
  Running run(Gang(4));
  run.cluster.Exit(run.job, 3, 137);
  CHECK(run.State() == "Completing");
  CHECK(run.Tasks() == "LLLx");
  CHECK(run.Message() == "worker-3 exited with 137 on n4");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Failed");
  CHECK(run.Message() == "worker-3 exited with 137 on n4");
}

TEST_CASE("failures restart the job while retries remain, with growing back-off") {
  JobShape shape = Gang(2);
  shape.max_retries = 2;
  Running run(shape);
  for (const Duration wait : {kSecond, 2 * kSecond}) {
    run.cluster.Exit(run.job, 0, 1);
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Restarting");
    CHECK(run.Tasks() == "..");
    CHECK(run.cluster.Why(run.job)[0].code == WaitCode::kRetryBackoff);
    CHECK(run.cluster.Why(run.job)[0].until == run.cluster.now() + wait);
    run.cluster.Advance(wait - absl::Milliseconds(1));
    CHECK(run.State() == "Restarting");
    run.cluster.Advance(absl::Milliseconds(1));
    run.cluster.RunAll(run.job);
    CHECK(run.State() == "Running");
  }
  CHECK(run.cluster.status(run.job).retries == 2);
  CHECK(run.cluster.status(run.job).starts == 3);
  run.cluster.Exit(run.job, 1, 1);
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Failed");
  CHECK(run.Message() == "worker-1 exited with 1 on n2; all 2 retries are used");
}

TEST_CASE("cancel: stops running tasks, then Cancelled, or at once before the start") {
  Running run(Gang(2));
  run.cluster.Must(JobCancelled{.id = run.job, .reason = "mistake"});
  run.cluster.Settle();
  CHECK(run.State() == "Completing");
  CHECK(run.Tasks() == "LL");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Cancelled");
  CHECK(run.Message() == "mistake");

  const JobId waiting = run.cluster.Submit("w", Gang(9));
  run.cluster.Settle();
  run.cluster.Must(JobCancelled{.id = waiting});
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(waiting) == "Cancelled");
}

TEST_CASE("cancel while members leave for a restart: none of them runs again") {
  JobShape shape = Gang(2);
  shape.max_retries = 1;
  Running run(shape);
  run.cluster.Exit(run.job, 0, 1);
  REQUIRE(run.Tasks() == ".L");
  run.cluster.Must(JobCancelled{.id = run.job});
  run.cluster.Settle();
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Cancelled");
}

TEST_CASE("an ended job is deleted after its time to live, unless others depend on it") {
  TestCluster cluster;
  cluster.AddNodes("n", 1);
  JobShape shape = Gang(1);
  shape.ttl = absl::Minutes(1);
  const JobId first = cluster.Submit("first", shape);
  JobShape after = Gang(1);
  after.dependencies = {{first, DependencyCondition::kAfterOk}};
  after.start_after = cluster.now() + absl::Minutes(10);
  const JobId second = cluster.Submit("second", after);
  cluster.RunAll(first);
  cluster.Exit(first, 0);
  cluster.Advance(absl::Minutes(5));
  CHECK(cluster.StateOf(first) == "Succeeded");
  CHECK(cluster.StateOf(second) == "Held");
  cluster.Advance(absl::Minutes(5));
  CHECK(cluster.StateOf(second) == "Binding");
  CHECK(cluster.StateOf(first) == "gone");
}

TEST_CASE("walltime used up") {
  JobShape shape = Gang(2);
  shape.walltime = absl::Hours(1);
  SECTION("aborts by default") {
    Running run(shape);
    run.cluster.Advance(absl::Minutes(59));
    CHECK(run.State() == "Running");
    run.cluster.Advance(absl::Minutes(1));
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Failed");
    CHECK(run.Message() == "walltime of 1h used up");
  }
  SECTION("follows a policy") {
    shape.policies = {On(PolicyEvent::kTimeout, PolicyAction::kComplete)};
    Running run(shape);
    run.cluster.Advance(absl::Hours(1));
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Succeeded");
  }
  SECTION("later, if the policy has a delay") {
    shape.policies = {On(PolicyEvent::kTimeout, PolicyAction::kAbort, {}, absl::Minutes(5))};
    Running run(shape);
    run.cluster.Advance(absl::Hours(1));
    CHECK(run.State() == "Running");
    run.cluster.Advance(absl::Minutes(5));
    CHECK(run.State() == "Completing");
  }
  SECTION("may be ignored") {
    shape.policies = {On(PolicyEvent::kTimeout, PolicyAction::kIgnore)};
    Running run(shape);
    run.cluster.Advance(absl::Hours(2));
    CHECK(run.State() == "Running");
  }
}

// ---- Holding

TEST_CASE("dependencies hold a job, release it, or fail it") {
  struct Row {
    DependencyCondition condition;
    const char* first_ends;
    const char* second;
  };
  const Row row = GENERATE(Row{DependencyCondition::kAfterOk, "Succeeded", "Binding"},
                           Row{DependencyCondition::kAfterOk, "Failed", "Failed"},
                           Row{DependencyCondition::kAfterOk, "Cancelled", "Failed"},
                           Row{DependencyCondition::kAfterAny, "Succeeded", "Binding"},
                           Row{DependencyCondition::kAfterAny, "Failed", "Binding"},
                           Row{DependencyCondition::kAfterAny, "Cancelled", "Binding"},
                           Row{DependencyCondition::kAfterNotOk, "Succeeded", "Failed"},
                           Row{DependencyCondition::kAfterNotOk, "Failed", "Binding"},
                           Row{DependencyCondition::kAfterNotOk, "Cancelled", "Binding"});
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId first = cluster.Submit("first", Gang(1));
  JobShape shape = Gang(1);
  shape.dependencies = {{first, row.condition}};
  const JobId second = cluster.Submit("second", shape);
  cluster.RunAll(first);
  CHECK(cluster.StateOf(second) == "Held");
  REQUIRE(cluster.Why(second).size() == 1);
  CHECK(cluster.Why(second)[0].code == WaitCode::kDependency);
  CHECK(cluster.Why(second)[0].job == first);
  if (row.first_ends == std::string("Cancelled")) {
    cluster.Must(JobCancelled{.id = first});
    cluster.Settle();
    cluster.GoneAll(first);
  } else {
    cluster.Exit(first, 0, row.first_ends == std::string("Failed") ? 1 : 0);
  }
  INFO(static_cast<int>(row.condition) << " " << row.first_ends);
  CHECK(cluster.StateOf(first) == row.first_ends);
  CHECK(cluster.StateOf(second) == row.second);
}

TEST_CASE("a chain of dependencies fails together") {
  TestCluster cluster;
  cluster.AddNodes("n", 1);
  const JobId first = cluster.Submit("first", Gang(1));
  JobId last = first;
  for (int i = 0; i < 5; ++i) {
    JobShape shape = Gang(1);
    shape.dependencies = {{last, DependencyCondition::kAfterOk}};
    last = cluster.Submit(absl::StrCat("d", i), shape);
  }
  cluster.RunAll(first);
  cluster.Exit(first, 0, 1);
  CHECK(cluster.StateOf(last) == "Failed");
  CHECK(cluster.status(JobId{2}).message == "cannot start any more: job first failed");
}

TEST_CASE("a start time holds a job, and the plan has the wake-up time") {
  TestCluster cluster;
  cluster.AddNodes("n", 1);
  JobShape shape = Gang(1);
  shape.start_after = cluster.now() + absl::Minutes(3);
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Held");
  CHECK(cluster.Why(job)[0].code == WaitCode::kStartTime);
  CHECK(cluster.Why(job)[0].until == shape.start_after);
  CHECK(cluster.Cycle().wake_at == shape.start_after);
  cluster.Advance(absl::Minutes(3));
  CHECK(cluster.StateOf(job) == "Binding");
}

TEST_CASE("submitted on hold: Held until it is resumed") {
  TestCluster cluster;
  cluster.AddNodes("n", 1);
  JobShape shape = Gang(1);
  shape.suspended = true;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Held");
  CHECK(cluster.Why(job)[0].code == WaitCode::kUserHold);
  cluster.Must(JobSuspended{.id = job, .suspended = false});
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Binding");
}

TEST_CASE("suspend stops a running job and resume restarts it without using a retry") {
  Running run(Gang(2));
  run.cluster.Must(JobSuspended{.id = run.job});
  run.cluster.Settle();
  CHECK(run.Tasks() == "LL");
  CHECK(run.State() == "Restarting");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Suspended");
  CHECK(run.Tasks() == "..");
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
  run.cluster.RunAll(run.job);
  CHECK(run.State() == "Running");
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("a requeue stops a running job, which starts again without using a retry") {
  Running run(Gang(2));
  TestCluster& cluster = run.cluster;
  const LifecycleParameters parameters;
  const auto requeue = [&] {
    return RequeueOf(cluster.state(), cluster.state().jobs().At(run.job), parameters, cluster.now(),
                     "requeued by ada");
  };
  for (EventBody& event : requeue()) cluster.Must(std::move(event));
  CHECK(run.State() == "Restarting");
  CHECK(run.Tasks() == "LL");
  CHECK(requeue().empty());  // it stops already
  cluster.GoneAll(run.job);
  cluster.RunAll(run.job);
  CHECK(run.State() == "Running");
  CHECK(cluster.status(run.job).retries == 0);
  CHECK(cluster.status(run.job).starts == 2);
}

TEST_CASE("succeeded tasks of an elastic group do not run again after a suspension") {
  Running run({.groups = {{.replicas = 3, .min_available = 1, .cpu = 40}}});
  run.cluster.Exit(run.job, 0);
  run.cluster.Must(JobSuspended{.id = run.job});
  run.cluster.Settle();
  run.cluster.GoneAll(run.job);
  CHECK(run.Tasks() == "o..");
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
  run.cluster.RunAll(run.job);
  CHECK(run.Tasks() == "oRR");
  CHECK(run.State() == "Running");
  CHECK(run.cluster.status(run.job).starts == 2);
}

TEST_CASE("suspend and resume when all tasks have succeeded and only a delayed action is pending") {
  JobShape shape = Gang(1);
  shape.policies = {
      On(PolicyEvent::kTaskCompleted, PolicyAction::kComplete, {}, absl::Seconds(10))};
  Running run(shape);
  run.cluster.Exit(run.job, 0);
  CHECK(run.State() == "Running");
  run.cluster.Must(JobSuspended{.id = run.job});
  run.cluster.Settle();
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
  run.cluster.Settle();
  CHECK(run.State() == "Succeeded");
}

TEST_CASE("resumed while its members are still being released: restarts when they are gone") {
  Running run(Gang(2));
  run.cluster.Must(JobSuspended{.id = run.job});
  run.cluster.Settle();
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
  run.cluster.Settle();
  CHECK(run.State() == "Restarting");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Binding");
}

TEST_CASE("groups start after others run or have completed") {
  TestCluster cluster;
  cluster.AddNodes("n", 4);
  JobShape shape{
      .groups = {{.name = "prepare", .cpu = 40},
                 {.name = "master", .cpu = 40, .depends_on = {{0, GroupCondition::kCompleted}}},
                 {.name = "worker",
                  .replicas = 2,
                  .cpu = 40,
                  .depends_on = {{1, GroupCondition::kRunning}}}}};
  const JobId job = cluster.Submit("j", shape);
  cluster.RunAll(job);
  CHECK(cluster.Tasks(job) == "R...");
  CHECK(cluster.StateOf(job) == "Running");
  cluster.Exit(job, 0);
  CHECK(cluster.Tasks(job) == "oB..");
  cluster.PrepareAll(job);
  CHECK(cluster.Tasks(job) == "oS..");
  cluster.Report(job, 1, ReportState::kRunning);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "oRBB");
  cluster.Report(job, 2, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "oRPB");  // a late group starts together, too
  cluster.Report(job, 3, ReportState::kPrepared);
  cluster.Settle();
  CHECK(cluster.Tasks(job) == "oRSS");
  cluster.ReportAll(job, TaskState::kStarting, ReportState::kRunning);
  CHECK(cluster.status(job).starts == 1);
  for (uint32_t task : {1u, 2u, 3u}) cluster.Exit(job, task);
  CHECK(cluster.StateOf(job) == "Succeeded");
}

// Found by the simulation: the gang was bound with it, and Apply refused the decision.
TEST_CASE("a group that waits for another again does not keep places") {
  TestCluster cluster;
  cluster.AddNodes("n", 4);
  JobShape shape{
      .groups = {{.name = "master", .replicas = 2, .cpu = 40},
                 {.name = "worker", .cpu = 40, .depends_on = {{0, GroupCondition::kRunning}}}}};
  shape.max_retries = 3;
  const JobId job = cluster.Submit("j", shape);
  cluster.RunAll(job);
  cluster.PrepareAll(job);
  cluster.Report(job, 2, ReportState::kRunning);
  cluster.Settle();
  REQUIRE(cluster.Tasks(job) == "RRR");
  cluster.Exit(job, 0, 1);
  cluster.GoneAll(job);
  REQUIRE(cluster.StateOf(job) == "Restarting");  // its back-off
  cluster.Must(TasksNominated{
      .job = job, .placements = {{.task = 2, .node = cluster.node_id("n4"), .devices = {}}}});
  cluster.Advance(absl::Seconds(2));
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Binding");
  CHECK(cluster.Tasks(job) == "BB.");
}

}  // namespace
}  // namespace berth
