// Starts that were refused: by the node's fault, or for what the job brought along.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/engine/plan.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::kSecond;
using testing::Running;
using testing::TestCluster;

void Refuse(TestCluster& cluster, JobId job, uint32_t task, bool own_fault,
            const std::string& message = "cannot enter /typo") {
  cluster.Must(TaskReported{.task = {job, task},
                            .attempt = cluster.job(job).tasks[task].attempt,
                            .state = ReportState::kRefused,
                            .message = message,
                            .own_fault = own_fault});
}

bool NoNodeIsBlamed(const TestCluster& cluster) {
  bool none = cluster.state().backoffs().empty();
  cluster.state().nodes().ForEach([&](NodeId, const Node& node) {
    none = none && node.status.refusals == 0 && !node.status.cordoned && !node.status.draining;
  });
  return none;
}

// ---- What the job brought along

TEST_CASE("a job's own fault is tried on one other node, then the job fails, no node is blamed") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1");
  Refuse(cluster, job, 0, true);
  cluster.Settle();
  CHECK(cluster.Where(job) == "n2");  // at once
  CHECK(cluster.status(job).message == "worker-0: cannot enter /typo (refused by n1)");
  Refuse(cluster, job, 0, true);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(cluster.status(job).message == "worker-0: cannot enter /typo (refused by n1 and n2)");
  CHECK(cluster.status(job).retries == 0);
  CHECK(NoNodeIsBlamed(cluster));
}

TEST_CASE("retries do not help a job that brought along what is wrong") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  testing::JobShape shape = Gang(1);
  shape.max_retries = 5;
  const JobId job = cluster.Submit("j", shape);
  cluster.Settle();
  for (int i = 0; i < 2; ++i) {
    Refuse(cluster, job, 0, true);
    cluster.Settle();
  }
  CHECK(cluster.StateOf(job) == "Failed");
}

TEST_CASE("where no other node can take it, the same one is asked once more after a while") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  Refuse(cluster, job, 0, true);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Pending");
  CHECK(cluster.Tasks(job) == ".");
  const std::vector<WaitReason> why = cluster.Why(job);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kNodesBackingOff);
  CHECK(why[0].nodes == 1);
  CHECK(why[0].until == cluster.now() + absl::Seconds(5));
  CHECK(why[0].detail.find("1 node is left out until ") != std::string::npos);
  CHECK(why[0].detail.find("after refusing this job: worker-0: cannot enter /typo") !=
        std::string::npos);
  const JobId other = cluster.Submit("other", Gang(1));  // the node is there for others
  cluster.Settle();
  CHECK(cluster.Where(other) == "n1");
  cluster.RunAll(other);
  cluster.Exit(other, 0);
  cluster.Advance(absl::Seconds(4));
  CHECK(cluster.Tasks(job) == ".");
  cluster.Advance(kSecond);
  REQUIRE(cluster.Where(job) == "n1");
  Refuse(cluster, job, 0, true);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(cluster.status(job).message == "worker-0: cannot enter /typo (refused by n1)");
}

TEST_CASE("a gang that two nodes refuse at once for its own fault fails at once, as a whole") {
  TestCluster cluster;
  cluster.AddNodes("n", 4);
  const JobId job = cluster.Submit("j", Gang(4));
  cluster.Settle();
  REQUIRE(cluster.Tasks(job) == "BBBB");
  for (uint32_t task = 0; task < 3; ++task) Refuse(cluster, job, task, true);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Completing");
  cluster.GoneAll(job);
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(cluster.status(job).message == "worker-0: cannot enter /typo (refused by n1, n2 and n3)");
  CHECK(NoNodeIsBlamed(cluster));
}

TEST_CASE("members that one node refuses at once are one incident") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId job = cluster.Submit("j", {.groups = {{.name = "worker", .replicas = 3, .cpu = 10}}});
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1 n1 n1");
  for (uint32_t task = 0; task < 3; ++task) Refuse(cluster, job, task, true);
  cluster.Settle();
  CHECK(cluster.Where(job) == "n2 n2 n2");
  cluster.RunAll(job);
  CHECK(cluster.StateOf(job) == "Running");
  CHECK(cluster.status(job).refusals == Refusals{});  // it ran: that counts no more
}

TEST_CASE("of two faults at once each is answered: the node's blames it, the job's counts") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId job = cluster.Submit("j", Gang(2));
  cluster.Settle();
  Refuse(cluster, job, 0, false, "cannot fork");
  Refuse(cluster, job, 1, true);
  cluster.Settle();
  CHECK(cluster.node("n1").status.refusals == 1);
  CHECK(cluster.node("n1").status.refusal == "cannot fork");
  CHECK(cluster.node("n2").status.refusals == 0);
  CHECK(cluster.status(job).refusals.own == 1);
  CHECK(cluster.status(job).message == "worker-1: cannot enter /typo (refused by n2)");
}

TEST_CASE("a task beyond the minimum that is refused never ends the job, it grows more slowly") {
  Running run({.groups = {{.name = "worker", .replicas = 2, .min_available = 1, .cpu = 40}}}, 1);
  run.cluster.AddNodes("m", 2);
  const Duration waits[] = {kSecond, 2 * kSecond, 4 * kSecond, 8 * kSecond};
  for (const Duration wait : waits) {
    run.cluster.Settle();
    REQUIRE(run.Tasks() == "RB");
    Refuse(run.cluster, run.job, 1, true);
    run.cluster.Settle();
    CHECK(run.Tasks() == "R.");
    run.cluster.Advance(wait - absl::Milliseconds(1));
    CHECK(run.Tasks() == "R.");
    run.cluster.Advance(absl::Milliseconds(1));
  }
  CHECK(run.State() == "Running");
  CHECK(NoNodeIsBlamed(run.cluster));
}

TEST_CASE("a group that starts later fails the job by its own fault") {
  Running run({.groups = {{.name = "first", .cpu = 40},
                          {.name = "later", .cpu = 40, .depends_on = {{.group = 0}}}}},
              4);
  for (int i = 0; i < 2; ++i) {
    run.cluster.Settle();
    REQUIRE(run.Tasks() == "RB");
    Refuse(run.cluster, run.job, 1, true);
    run.cluster.Settle();
  }
  CHECK(run.State() == "Completing");
  run.cluster.GoneAll(run.job);
  CHECK(run.State() == "Failed");
  CHECK(run.Message().find("later-0: cannot enter /typo (refused by ") == 0);
}

TEST_CASE("a job that was cancelled, or that is told to stop, is not judged by a refusal") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  cluster.Must(JobCancelled{.id = job, .reason = "enough"});
  cluster.Settle();
  Refuse(cluster, job, 0, true);
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Cancelled");
}

// ---- The node's fault

TEST_CASE("back-off doubles with each refusal, one job alone never cordons a node") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", Gang(1));
  const Duration waits[] = {kSecond, 2 * kSecond, 4 * kSecond, 8 * kSecond};
  for (const Duration wait : waits) {
    cluster.Settle();
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, 0, false, "cannot fork");
    cluster.Settle();
    CHECK(cluster.Tasks(job) == ".");
    CHECK(cluster.node("n1").status.backoff_until == cluster.now() + wait);
    cluster.Advance(wait - absl::Milliseconds(1));
    CHECK(cluster.Tasks(job) == ".");
    cluster.Advance(absl::Milliseconds(1));
  }
  for (int more = 0; more < 6; ++more) {
    Refuse(cluster, job, 0, false, "cannot fork");
    cluster.Settle();
    cluster.Advance(absl::Hours(1));
  }
  CHECK_FALSE(cluster.node("n1").status.cordoned);
}

TEST_CASE("refusing several jobs in a row cordons the node, and whoever runs there goes on") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId healthy = cluster.Submit("healthy", {.groups = {{.cpu = 1}}});
  cluster.RunAll(healthy);
  for (int number = 1; number <= 5; ++number) {
    CHECK_FALSE(cluster.node("n1").status.cordoned);
    const JobId job = cluster.Submit(absl::StrCat("j", number), Gang(1));
    cluster.Settle();
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, 0, false, "cannot fork");
    cluster.Settle();
    cluster.Must(JobCancelled{.id = job, .reason = "enough"});
    cluster.Settle();
    cluster.Advance(absl::Hours(1));
  }
  CHECK(cluster.node("n1").status.cordoned);
  CHECK_FALSE(cluster.node("n1").status.draining);
  CHECK(cluster.node("n1").status.reason ==
        "starts refused: 5 jobs in a row, the last: cannot fork");
  CHECK(cluster.StateOf(healthy) == "Running");
  CHECK(cluster.status(healthy).starts == 1);
}

TEST_CASE("what a node refuses while it backs off is of the same incident") {
  TestCluster cluster;
  cluster.AddNode("n1");
  std::vector<JobId> jobs;
  for (int number = 0; number < 8; ++number) {
    jobs.push_back(cluster.Submit(absl::StrCat("j", number), {.groups = {{.cpu = 1}}}));
  }
  cluster.Settle();
  for (JobId job : jobs) {
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, 0, false, "no space left");
  }
  cluster.Settle();
  CHECK(cluster.node("n1").status.refusals == 1);
  CHECK(cluster.node("n1").status.refused_jobs == 1);
  CHECK(cluster.node("n1").status.last_refused == jobs.back());
  CHECK(cluster.node("n1").status.backoff_until == cluster.now() + kSecond);
  CHECK_FALSE(cluster.node("n1").status.cordoned);
}

TEST_CASE("a node that prepares a task is trusted again") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  Refuse(cluster, job, 0, false, "cannot fork");
  cluster.Settle();
  CHECK(cluster.node("n1").status.refusal == "cannot fork");
  cluster.Advance(kSecond);
  cluster.PrepareAll(job);
  CHECK(cluster.node("n1").status.refusals == 0);
  CHECK(cluster.node("n1").status.refusal.empty());
}

TEST_CASE(
    "starts that nodes refuse again and again are waited for, longer each time, then given up") {
  TestCluster cluster;
  cluster.AddNodes("n", 40);
  const JobId job = cluster.Submit("j", Gang(1));
  Duration waited = absl::ZeroDuration();
  for (int start = 1; start < kMaxRefusedStarts; ++start) {
    cluster.Settle();
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, 0, false, "cannot fork");
    cluster.Settle();
    if (start <= 2) continue;  // elsewhere, at once
    CHECK(cluster.StateOf(job) == "Restarting");
    const Duration wait = std::min(kSecond * (int64_t{1} << (start - 3)), absl::Minutes(5));
    CHECK(cluster.status(job).hold_until == cluster.now() + wait);
    CHECK(cluster.Why(job).at(0).code == WaitCode::kRetryBackoff);
    CHECK(cluster.Why(job).at(0).detail.find("worker-0: cannot fork (refused by n") == 0);
    cluster.Advance(wait);
    waited += wait;
  }
  CHECK(waited > absl::Minutes(20));
  Refuse(cluster, job, 0, false, "cannot fork");
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(cluster.status(job).message.find("; 16 starts in a row were refused") != std::string::npos);
  CHECK(cluster.status(job).message.find("worker-0: cannot fork (refused by n") == 0);
}

TEST_CASE("while nodes back off the reason says so: how many, until when, after whom and why") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(3));
  cluster.Settle();
  for (uint32_t task = 0; task < 3; ++task) Refuse(cluster, job, task, false, "cannot fork");
  cluster.Settle();
  const std::vector<WaitReason> why = cluster.Why(job);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kNodesBackingOff);
  CHECK(why[0].nodes == 3);
  CHECK(why[0].job == job);
  CHECK(why[0].until == cluster.now() + kSecond);
  CHECK(why[0].detail ==
        absl::StrCat("0 of 3 tasks fit now: 3 nodes are backing off until ",
                     absl::FormatTime("%H:%M:%S", why[0].until, absl::UTCTimeZone()),
                     " UTC, after refusing this job: cannot fork"));
  const JobId other = cluster.Submit("other", Gang(1));
  cluster.Settle();
  CHECK(cluster.Why(other).at(0).code == WaitCode::kNodesBackingOff);
  CHECK(cluster.Why(other).at(0).detail.find("after refusing job j: cannot fork") !=
        std::string::npos);
  cluster.Advance(kSecond);
  CHECK(cluster.Tasks(job) == "BBB");
}

// ---- What a job that ran says

TEST_CASE("the job's message says what its agent said, and names want of memory") {
  Running run(testing::JobShape{.groups = {{.name = "worker", .cpu = 4, .memory_gib = 2}}});
  run.cluster.Must(
      TaskReported{.task = {run.job, 0},
                   .attempt = 1,
                   .state = ReportState::kExited,
                   .exit_code = 137,
                   .exit_signal = 9,
                   .message = "out of memory: the kernel killed 1 of its processes, at 2048 MiB "
                              "asked for"});
  run.cluster.Settle();
  CHECK(run.State() == "Failed");
  CHECK(run.Message() == "worker-0 ran out of memory on n1: it asked for 2Gi (exit 137)");
}

TEST_CASE("a command that is not there is named in the job's message") {
  Running run(Gang(1));
  run.cluster.Must(TaskReported{.task = {run.job, 0},
                                .attempt = 1,
                                .state = ReportState::kExited,
                                .exit_code = 127,
                                .message = "command not found: trian.py"});
  run.cluster.Settle();
  CHECK(run.Message() == "worker-0 exited with 127 on n1: command not found: trian.py");
}

}  // namespace
}  // namespace berth
