// Jobs that are paused: their tasks are frozen where they are.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::JobShape;
using testing::Running;

constexpr int64_t kAllCpu = 64'000;  // of a node; a task of Gang takes 40'000

void AskPause(Running& run) {
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = true, .freeze = true});
  run.cluster.Settle();
}

void ReportFrozen(Running& run) {
  const Job& job = run.cluster.job(run.job);
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].pause != PauseState::kPausing) continue;
    run.cluster.Report(run.job, i, ReportState::kPaused);
  }
  run.cluster.Settle();
}

void PauseNow(Running& run) {
  AskPause(run);
  ReportFrozen(run);
}

void AskResume(Running& run) {
  run.cluster.Must(JobSuspended{.id = run.job, .suspended = false});
  run.cluster.Settle();
}

// One letter a task: Running, being Frozen, frozen (#), waiting for its CPU (~).
std::string Pauses(const Running& run) {
  std::string letters;
  for (const Task& task : run.cluster.job(run.job).tasks) {
    letters += "RF#~"[static_cast<size_t>(task.pause)];
  }
  return letters;
}

int64_t FreeCpu(const Running& run, const std::string& node) {
  return FreeOf(run.cluster.node(node))[kCpu];
}

void CheckSums(const Running& run) {
  const absl::Status status = CheckConsistency(run.cluster.state());
  INFO(status.ToString());
  CHECK(status.ok());
}

TEST_CASE("a paused job keeps its places, gives back its CPU, and goes on where it was") {
  JobShape shape = Gang(2);
  shape.groups[0].memory_gib = 100;
  Running run(shape);
  AskPause(run);
  CHECK(Pauses(run) == "FF");
  CHECK(FreeCpu(run, "n1") == kAllCpu - 40'000);  // until it is known to be frozen
  ReportFrozen(run);
  CHECK(Pauses(run) == "##");
  CHECK(run.State() == "Running");
  CHECK(run.cluster.Where(run.job) == "n1 n2");
  CHECK(FreeCpu(run, "n1") == kAllCpu);
  CHECK(FreeOf(run.cluster.node("n1"))[kMemory] == int64_t{412} << 30);
  REQUIRE(run.cluster.Why(run.job).size() == 1);
  CHECK(run.cluster.Why(run.job)[0].code == WaitCode::kUserHold);
  CheckSums(run);
  AskResume(run);
  CHECK(Pauses(run) == "RR");
  CHECK(run.Tasks() == "RR");
  CHECK(FreeCpu(run, "n1") == kAllCpu - 40'000);
  CHECK(run.cluster.Why(run.job).empty());
  CHECK(run.cluster.job(run.job).tasks[0].attempt == 1);
  CheckSums(run);
}

TEST_CASE("walltime, run limit and service stand still while a job is paused") {
  JobShape shape = Gang(1);
  shape.walltime = absl::Minutes(10);
  shape.run_limit = absl::Minutes(20);
  Running run(shape);
  run.cluster.Advance(absl::Minutes(4));
  PauseNow(run);
  CHECK(PlannedEnd(run.cluster.job(run.job)) == absl::InfiniteFuture());
  run.cluster.Advance(absl::Minutes(50));
  CHECK(run.State() == "Running");
  AskResume(run);
  CHECK(RunTime(run.cluster.status(run.job), run.cluster.now()) == absl::Minutes(4));
  CHECK(PlannedEnd(run.cluster.job(run.job)) == run.cluster.now() + absl::Minutes(6));
  run.cluster.Advance(absl::Minutes(6) - absl::Seconds(1));
  CHECK(run.Tasks() == "R");
  run.cluster.Advance(absl::Seconds(1));
  CHECK(run.Tasks() == "L");
  CheckSums(run);
}

TEST_CASE("others use the CPU of a paused job, and it waits for it to resume") {
  Running run(Gang(1), 1);
  PauseNow(run);
  const JobId urgent = run.cluster.Submit("urgent", Gang(1));
  run.cluster.RunAll(urgent);
  CHECK(run.cluster.StateOf(urgent) == "Running");
  AskResume(run);
  CHECK(Pauses(run) == "~");
  REQUIRE(run.cluster.Why(run.job).size() == 1);
  const WaitReason why = run.cluster.Why(run.job)[0];
  CHECK(why.code == WaitCode::kPauseEnds);
  CHECK(why.needed == 40'000);
  CHECK(why.free == 24'000);
  CHECK(why.detail == "node n1");
  CheckSums(run);
  SECTION("and nobody who comes later gets it") {
    const JobId late = run.cluster.Submit("late", {.groups = {{.cpu = 20}}});
    run.cluster.Settle();
    CHECK(run.cluster.StateOf(late) == "Pending");
    run.cluster.Exit(urgent, 0);
    CHECK(Pauses(run) == "R");
    CHECK(run.cluster.StateOf(late) == "Binding");
  }
  SECTION("its clock stands still until then") {
    run.cluster.Advance(absl::Minutes(7));
    CHECK(RunTime(run.cluster.status(run.job), run.cluster.now()) == absl::ZeroDuration());
    run.cluster.Exit(urgent, 0);
    run.cluster.Advance(absl::Minutes(1));
    CHECK(RunTime(run.cluster.status(run.job), run.cluster.now()) == absl::Minutes(1));
  }
  SECTION("or it is paused again") {
    PauseNow(run);
    CHECK(Pauses(run) == "#");
    run.cluster.Exit(urgent, 0);
    CHECK(Pauses(run) == "#");
    CHECK(FreeCpu(run, "n1") == kAllCpu);
  }
  CheckSums(run);
}

TEST_CASE("of two jobs that resume, the more important one goes first") {
  Running run(Gang(1), 1);
  PauseNow(run);
  JobShape shape = Gang(1);
  shape.priority = 5;
  const JobId other = run.cluster.Submit("other", shape);
  run.cluster.RunAll(other);
  run.cluster.Must(JobSuspended{.id = other, .suspended = true, .freeze = true});
  run.cluster.Settle();
  run.cluster.Report(other, 0, ReportState::kPaused);
  run.cluster.Settle();
  const JobId third = run.cluster.Submit("third", Gang(1));
  run.cluster.RunAll(third);
  AskResume(run);
  run.cluster.Must(JobSuspended{.id = other, .suspended = false});
  run.cluster.Exit(third, 0);
  CHECK(Pauses(run) == "~");
  CHECK(run.cluster.job(other).tasks[0].pause == PauseState::kRuns);
  run.cluster.Exit(other, 0);
  CHECK(Pauses(run) == "R");
}

TEST_CASE("a pause that lasts too long becomes a suspension") {
  Running run(Gang(2));
  PauseNow(run);
  run.cluster.Advance(absl::Hours(1) - absl::Seconds(1));
  CHECK(Pauses(run) == "##");
  run.cluster.Advance(absl::Seconds(1));
  CHECK(run.Tasks() == "LL");
  CHECK(FreeCpu(run, "n1") == kAllCpu);
  CheckSums(run);
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Suspended");
  CheckSums(run);
}

TEST_CASE("a node that does not freeze a task in time: the pause is given up") {
  Running run(Gang(2));
  AskPause(run);
  run.cluster.Report(run.job, 0, ReportState::kPaused);
  run.cluster.Advance(absl::Seconds(30));
  CHECK(Pauses(run) == "RR");
  CHECK_FALSE(run.cluster.status(run.job).suspended);
  CHECK(run.Message() == "it was not paused: worker-1 on n2 was not frozen within 30s");
  CheckSums(run);
}

TEST_CASE("what ends a paused task ends it") {
  Running run(Gang(2));
  PauseNow(run);
  SECTION("a cancel") {
    run.cluster.Must(JobCancelled{run.job, "enough"});
    run.cluster.Settle();
    CHECK(run.Tasks() == "LL");
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Cancelled");
  }
  SECTION("a stop") {
    run.cluster.Must(JobSuspended{.id = run.job, .suspended = true});
    run.cluster.Settle();
    CHECK(run.Tasks() == "LL");
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Suspended");
  }
  SECTION("a drain: then it is on hold like any other") {
    run.cluster.Must(NodeSteered{.id = run.cluster.node_id("n1"), .draining = true});
    run.cluster.Settle();
    CHECK(run.Tasks() == "LL");
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Suspended");
    AskResume(run);
    run.cluster.RunAll(run.job);
    CHECK(run.Tasks() == "RR");
    CHECK(run.cluster.Where(run.job) == "n2 n3");
  }
  SECTION("a lost node") {
    run.cluster.Must(NodeSilenced{run.cluster.node_id("n1")});
    run.cluster.Settle();
    CHECK(run.Tasks() == "?L");
    CheckSums(run);
    run.cluster.Must(NodeFenced{run.cluster.node_id("n1")});
    run.cluster.GoneAll(run.job);
    CHECK(run.State() == "Suspended");
    CHECK(run.Tasks() == "..");
  }
  SECTION("its own end, as when the kernel kills it") {
    run.cluster.Exit(run.job, 0, 137);
    CHECK(run.cluster.status(run.job).state != JobState::kRunning);
  }
  CheckSums(run);
}

TEST_CASE("a paused job whose only task leaves a failed device is on hold like any other") {
  testing::TestCluster cluster;
  cluster.AddNode("n1", {.cpu = 64, .gpus = 1});
  const JobId id = cluster.Submit("j", {.groups = {{.cpu = 1, .gpus = 1}}});
  cluster.RunAll(id);
  cluster.Must(JobSuspended{.id = id, .suspended = true, .freeze = true});
  cluster.Settle();
  cluster.Report(id, 0, ReportState::kPaused);
  cluster.Settle();
  NodeSpec spec = cluster.node("n1").spec;
  spec.devices[0].unhealthy = true;
  cluster.Must(
      NodeRegistered{.id = cluster.node_id("n1"), .spec = spec, .epoch = 2, .agent_id = "n1"});
  cluster.Settle();
  CHECK(cluster.Tasks(id) == "L");
  cluster.GoneAll(id);
  CHECK(cluster.StateOf(id) == "Suspended");
}

TEST_CASE("a node that comes back at once with its frozen task: the pause goes on") {
  Running run(Gang(1));
  PauseNow(run);
  run.cluster.Must(NodeSilenced{run.cluster.node_id("n1")});
  CheckSums(run);
  run.cluster.Must(NodeRegistered{.id = run.cluster.node_id("n1"),
                                  .spec = run.cluster.node("n1").spec,
                                  .epoch = 2,
                                  .agent_id = "n1"});
  run.cluster.Settle();
  CHECK(run.Tasks() == "R");
  CHECK(Pauses(run) == "#");
  CHECK(FreeCpu(run, "n1") == kAllCpu);
  AskResume(run);
  CHECK(Pauses(run) == "R");
  CheckSums(run);
}

TEST_CASE("a resume before all tasks are frozen") {
  Running run(Gang(2));
  AskPause(run);
  run.cluster.Report(run.job, 0, ReportState::kPaused);
  AskResume(run);
  CHECK(Pauses(run) == "RR");
  CHECK_FALSE(
      run.cluster
          .Try(TaskReported{.task = {run.job, 1}, .attempt = 1, .state = ReportState::kPaused})
          .ok());
  CheckSums(run);
}

TEST_CASE("events of pauses that do not fit are refused") {
  Running run(Gang(2));
  auto& cluster = run.cluster;
  CHECK_FALSE(cluster.Try(TasksResumed{.job = run.job, .tasks = {0}}).ok());
  CHECK_FALSE(cluster.Try(TasksPaused{.job = run.job, .tasks = {}}).ok());
  CHECK_FALSE(cluster.Try(TasksPaused{.job = run.job, .tasks = {0, 0}}).ok());
  CHECK_FALSE(cluster.Try(TasksPaused{.job = JobId{99}, .tasks = {0}}).ok());
  PauseNow(run);
  CHECK_FALSE(cluster.Try(TasksPaused{.job = run.job, .tasks = {0}}).ok());
  CHECK_FALSE(cluster.Try(TasksResumed{.job = run.job, .tasks = {0}}).ok());  // frozen
  const JobId urgent = cluster.Submit("urgent", {.groups = {{.replicas = 4, .cpu = 60}}});
  cluster.RunAll(urgent);
  CHECK(cluster.StateOf(urgent) == "Running");
  cluster.Must(TasksResumed{.job = run.job, .tasks = {0, 1}, .waits = true});
  CHECK_FALSE(cluster.Try(TasksResumed{.job = run.job, .tasks = {0, 1}}).ok());  // no CPU
}

}  // namespace
}  // namespace berth
