// What follows when a gang or a task makes no progress, and what it reported before.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::JobShape;
using testing::kSecond;
using testing::On;
using testing::Running;

JobShape Watched(int tasks) {
  JobShape shape = Gang(tasks);
  shape.watchdog = absl::Minutes(10);
  shape.dump_wait = absl::Seconds(10);
  shape.max_retries = 3;
  return shape;
}

// Members of a group whose tasks do not need each other.
JobShape WatchedArray(int tasks) {
  JobShape shape = Watched(tasks);
  shape.groups[0].membership = GangMembership::kIndependent;
  return shape;
}

TaskHung HungTask(const Running& run, uint32_t task, bool over = false) {
  return {.task = {run.job, task},
          .attempt = run.cluster.job(run.job).tasks[task].attempt,
          .still = absl::Minutes(10),
          .step = 120,
          .over = over};
}

void Hang(Running& run, uint32_t task) {
  run.cluster.Must(HungTask(run, task));
  run.cluster.Settle();
}

TEST_CASE("a gang that hangs has time to write its stacks, and restarts with one retry") {
  Running run(Watched(3));
  Hang(run, 1);
  CHECK(run.State() == "Running");
  CHECK(Hangs(run.cluster.job(run.job)));
  run.cluster.Exit(run.job, 0, 134);  // the signal for its stacks ends it
  CHECK(run.State() == "Running");
  CHECK(run.cluster.status(run.job).retries == 0);
  SECTION("when the time is over") { run.cluster.Advance(absl::Seconds(10)); }
  SECTION("or all have ended") {
    run.cluster.Exit(run.job, 1, 134);
    CHECK(run.State() == "Running");
    run.cluster.Exit(run.job, 2, 134);
  }
  CHECK(run.State() == "Restarting");
  CHECK(run.cluster.status(run.job).retries == 1);
  CHECK(run.Message() == "worker-1 hangs on n2: no progress for 10m, at step 120");
  run.cluster.GoneAll(run.job);
  run.cluster.Advance(kSecond);
  CHECK(run.Tasks() == "BBB");
  CHECK_FALSE(Hangs(run.cluster.job(run.job)));
  CHECK(run.cluster.status(run.job).retries == 1);
  CHECK(run.Message() == "worker-1 hangs on n2: no progress for 10m, at step 120");
  run.cluster.RunAll(run.job);
  CHECK(run.State() == "Running");
}

TEST_CASE("a gang that goes on in time is not restarted") {
  Running run(Watched(2));
  Hang(run, 0);
  run.cluster.Advance(absl::Seconds(9));
  run.cluster.Must(HungTask(run, 0, /*over=*/true));
  run.cluster.Advance(absl::Minutes(1));
  CHECK(run.Tasks() == "RR");
  CHECK(run.cluster.status(run.job).retries == 0);
}

TEST_CASE("policies decide about a hang") {
  JobShape shape = Watched(2);
  shape.dump_wait = absl::ZeroDuration();
  SECTION("abort") {
    shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kAbort)};
    Running run(shape);
    Hang(run, 0);
    CHECK(run.State() == "Completing");
    CHECK(run.Message() == "worker-0 hangs on n1: no progress for 10m, at step 120");
  }
  SECTION("ignore: it is shown, and nothing else") {
    shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kIgnore)};
    Running run(shape);
    Hang(run, 0);
    run.cluster.Advance(absl::Minutes(1));
    CHECK(run.Tasks() == "RR");
    CHECK(Hangs(run.cluster.job(run.job)));
    run.cluster.Exit(run.job, 0, 1);  // a failure is answered as always
    CHECK(run.State() == "Restarting");
  }
  SECTION("without retries it fails") {
    shape.max_retries = 0;
    Running run(shape);
    Hang(run, 0);
    CHECK(run.State() == "Completing");
  }
}

TEST_CASE("a task that runs alone hangs alone") {
  JobShape shape = WatchedArray(3);
  shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kRestartTask)};
  Running run(shape);
  Hang(run, 1);
  run.cluster.Exit(run.job, 2, 0);  // others go on meanwhile
  CHECK(run.Tasks() == "RRo");
  run.cluster.Advance(absl::Seconds(10));
  run.cluster.Advance(kSecond);  // back-off
  CHECK(run.Tasks() == "RLo");
  CHECK(run.cluster.status(run.job).retries == 1);
  run.cluster.GoneAll(run.job);
  CHECK(run.Tasks() == "RBo");
  CHECK_FALSE(Hangs(run.cluster.job(run.job)));
}

TEST_CASE("a task that hung and then ended is restarted once") {
  JobShape shape = WatchedArray(2);
  shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kRestartTask),
                    On(PolicyEvent::kTaskFailed, PolicyAction::kRestartTask)};
  Running run(shape);
  Hang(run, 1);
  run.cluster.Exit(run.job, 1, 134);  // the signal for its stacks ended it
  run.cluster.Advance(absl::Seconds(10));
  run.cluster.Advance(2 * kSecond);
  CHECK(run.Tasks() == "RB");
  CHECK(run.cluster.status(run.job).retries == 1);
}

TEST_CASE("a task that hung and is left alone is answered when it fails") {
  JobShape shape = WatchedArray(2);
  shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kIgnore),
                    On(PolicyEvent::kTaskFailed, PolicyAction::kRestartTask)};
  Running run(shape);
  Hang(run, 1);
  run.cluster.Advance(absl::Minutes(1));
  run.cluster.Exit(run.job, 1, 9);
  run.cluster.Advance(2 * kSecond);
  CHECK(run.Tasks() == "RB");
}

TEST_CASE("a member that was replaced since does not hang with its gang") {
  JobShape shape = Watched(3);
  shape.groups[0].membership = GangMembership::kRendezvous;
  shape.policies = {On(PolicyEvent::kTaskHung, PolicyAction::kIgnore)};
  Running run(shape);
  Hang(run, 1);
  run.cluster.Advance(absl::Seconds(20));
  REQUIRE(HangsWith(run.cluster.job(run.job), 2));
  run.cluster.Exit(run.job, 2, 9);
  run.cluster.Advance(kSecond);  // back-off
  run.cluster.RunAll(run.job);
  REQUIRE(run.Tasks() == "RRR");
  CHECK_FALSE(HangsWith(run.cluster.job(run.job), 2));
  CHECK(HangsWith(run.cluster.job(run.job), 0));
}

TEST_CASE("only attempts that run report, and a job hangs once") {
  Running run(Watched(2));
  CHECK_FALSE(run.cluster.Try(TaskReady{{run.job, 0}, 2}).ok());
  CHECK_FALSE(run.cluster.Try(TaskReady{{run.job, 9}, 1}).ok());
  CHECK_FALSE(run.cluster.Try(CheckpointRecorded{{run.job, 0}, 1, -1}).ok());
  CHECK_FALSE(run.cluster.Try(HungTask(run, 0, /*over=*/true)).ok());
  Hang(run, 0);
  CHECK_FALSE(run.cluster.Try(HungTask(run, 1)).ok());
}

TEST_CASE("what an attempt reported ends with it, and the gang's checkpoint stays") {
  Running run(Watched(2));
  run.cluster.Must(TaskReady{{run.job, 0}, 1});
  run.cluster.Must(CheckpointRecorded{
      .task = {run.job, 0}, .attempt = 1, .step = 50, .place = CheckpointPlace::kShared});
  const auto task = [&]() -> const Task& { return run.cluster.job(run.job).tasks[0]; };
  CHECK(task().ready);
  CHECK(task().saved == run.cluster.now());
  run.cluster.Exit(run.job, 1, 1);
  run.cluster.GoneAll(run.job);
  run.cluster.Advance(kSecond);
  REQUIRE(run.Tasks() == "BB");
  CHECK_FALSE(task().ready);
  CHECK(task().saved == absl::InfinitePast());
  CHECK(run.cluster.status(run.job).checkpoint.step == 50);
  CHECK(run.cluster.status(run.job).checkpoint.place == CheckpointPlace::kShared);
}

TEST_CASE("a checkpoint of a task that runs alone is its own") {
  Running run(WatchedArray(2));
  run.cluster.Must(CheckpointRecorded{.task = {run.job, 0}, .attempt = 1, .step = 50});
  CHECK(run.cluster.job(run.job).tasks[0].saved == run.cluster.now());
  CHECK(run.cluster.status(run.job).checkpoint == Checkpoint{});
}

TEST_CASE("a partition restarts, and the others go on") {
  JobShape shape = Gang(4);
  shape.max_retries = 3;
  shape.groups[0].membership = GangMembership::kIndependent;
  shape.groups[0].partition_size = 2;
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kRestartPartition)};
  Running run(shape);
  run.cluster.Exit(run.job, 2, 7);
  CHECK(run.Tasks() == "RRxR");
  run.cluster.Advance(kSecond);
  CHECK(run.Tasks() == "RRBL");
  run.cluster.GoneAll(run.job);
  CHECK(run.Tasks() == "RRBB");
  CHECK(run.cluster.status(run.job).retries == 1);
}

TEST_CASE("a partition of a rigid gang restarts with all of it") {
  JobShape shape = Gang(4);
  shape.max_retries = 3;
  shape.groups[0].partition_size = 2;
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kRestartPartition)};
  Running run(shape);
  run.cluster.Exit(run.job, 2, 7);
  CHECK(run.State() == "Restarting");
}

}  // namespace
}  // namespace berth
