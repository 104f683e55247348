// Refused starts: by the node's fault, or by the job's own fault.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/engine/plan.h"
#include "core/model/task_message.h"
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

// ---- The job's own fault

TEST_CASE("a job's own fault is retried on one other node, then fails the job and blames no node") {
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

TEST_CASE("retries do not help a job whose own fault is refused") {
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

TEST_CASE("if no other node can run the job, the same node is tried once more after a while") {
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
  CHECK(why[0].detail.find("1 node is excluded until ") != std::string::npos);
  CHECK(why[0].detail.find("after refusing this job: worker-0: cannot enter /typo") !=
        std::string::npos);
  const JobId other = cluster.Submit("other", Gang(1));  // the node accepts other jobs
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

TEST_CASE("a gang that several nodes refuse at once for its own fault fails at once, as a whole") {
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
  CHECK(cluster.status(job).refusals == Refusals{});  // it ran, which resets the count
}

TEST_CASE("two simultaneous faults: the node's blames the node, the job's counts against the job") {
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

TEST_CASE("a refused task above the minimum never ends the job, but slows its growth") {
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

TEST_CASE("refusals do not count for a cancelled or stopping job") {
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

TEST_CASE("back-off doubles with each refusal, and one job alone never cordons a node") {
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

TEST_CASE("refusing several jobs in a row cordons the node, and running tasks continue") {
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

TEST_CASE("refusals during back-off belong to the same incident") {
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

TEST_CASE("a node is trusted again once a task runs there, not when a task is prepared") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  Refuse(cluster, job, 0, false, "cannot fork");
  cluster.Settle();
  cluster.Advance(kSecond);
  const bool starts_at_once = GENERATE(false, true);  // a task that is no gang reports no PREPARED
  if (!starts_at_once) cluster.PrepareAll(job);
  CHECK(cluster.node("n1").status.refusals == 1);
  CHECK(cluster.node("n1").status.refusal == "cannot fork");
  cluster.Report(job, 0, ReportState::kRunning);
  CHECK(cluster.node("n1").status.refusals == 0);
  CHECK(cluster.node("n1").status.refused_jobs == 0);
  CHECK(cluster.node("n1").status.refusal.empty());
}

// A gang with one member on n1 and one on n2. n1 refuses its member at Start: prolog, control
// group and namespaces come after PREPARED.
void RefuseAtStart(TestCluster& cluster, JobId gang) {
  cluster.Settle();
  REQUIRE(cluster.Where(gang) == "n1 n2");
  cluster.PrepareAll(gang);
  REQUIRE(cluster.Tasks(gang) == "SS");
  cluster.Report(gang, 1, ReportState::kRunning);
  Refuse(cluster, gang, 0, false, "prolog exited with 3");
  cluster.Settle();
  cluster.GoneAll(gang);
}

TEST_CASE("the back-off of a node that refuses gang members at Start doubles, too") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId gang = cluster.Submit("j", Gang(2));
  const Duration waits[] = {kSecond, 2 * kSecond, 4 * kSecond, 8 * kSecond};
  for (const Duration wait : waits) {
    RefuseAtStart(cluster, gang);
    CHECK(cluster.node("n1").status.backoff_until == cluster.now() + wait);
    CHECK(cluster.node("n2").status.refusals == 0);
    cluster.Advance(absl::Minutes(1));
  }
  CHECK(cluster.status(gang).refusals.starts == 4);
  CHECK_FALSE(cluster.node("n1").status.cordoned);
}

TEST_CASE("five gangs that a node refuses at Start cordon it") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  for (int number = 1; number <= 5; ++number) {
    CHECK_FALSE(cluster.node("n1").status.cordoned);
    const JobId gang = cluster.Submit(absl::StrCat("j", number), Gang(2));
    RefuseAtStart(cluster, gang);
    cluster.Must(JobCancelled{.id = gang, .reason = "enough"});
    cluster.Settle();
    cluster.Advance(absl::Hours(1));
  }
  CHECK(cluster.node("n1").status.cordoned);
  CHECK(cluster.node("n1").status.reason ==
        "starts refused: 5 jobs in a row, the last: prolog exited with 3");
  CHECK_FALSE(cluster.node("n2").status.cordoned);
}

TEST_CASE("a gang whose members a node refuses one by one is charged once") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId gang =
      cluster.Submit("j", {.groups = {{.name = "worker", .replicas = 20, .cpu = 1}}});
  cluster.Settle();
  cluster.PrepareAll(gang);
  for (uint32_t task = 0; task < 20; ++task) {
    Refuse(cluster, gang, task, false, "prolog exited with 3");
    cluster.Settle();
  }
  CHECK(cluster.StateOf(gang) == "Pending");
  CHECK(cluster.status(gang).refusals.starts == 1);
  CHECK(cluster.node("n1").status.refusals == 1);
}

// A job with one running member. Twenty members that its node had lost are bound again.
struct Restarted : Running {
  static testing::JobShape Shape(int min_available) {
    return {.groups = {{.name = "worker",
                        .replicas = 21,
                        .min_available = min_available,
                        .cpu = 1,
                        .membership = GangMembership::kIndependent}},
            .policies = {testing::On(PolicyEvent::kNodeLost, PolicyAction::kRestartTask)}};
  }
  explicit Restarted(int min_available) : Running(Shape(min_available), 1) {
    for (uint32_t task = 1; task <= 20; ++task) {
      cluster.Report(job, task, ReportState::kExited, 0, ExitCause::kGone);
    }
    cluster.Settle();
    REQUIRE(State() == "Running");
    REQUIRE(Tasks() == "R" + std::string(20, 'B'));
    cluster.AddNode("n2");
  }
  const Refusals& RefuseOneByOne(bool own_fault) {
    for (uint32_t task = 1; task <= 20; ++task) {
      Refuse(cluster, job, task, own_fault, "why");
      cluster.Settle();
    }
    REQUIRE(State() == "Running");
    return cluster.status(job).refusals;
  }
};

TEST_CASE("members of a running job that a node refuses one by one are charged once") {
  CHECK(Restarted(21).RefuseOneByOne(false).starts == 1);
  CHECK(Restarted(21).RefuseOneByOne(true).own == 1);
  CHECK(Restarted(1).RefuseOneByOne(false).spare == 1);
  CHECK(Restarted(1).RefuseOneByOne(true).spare == 1);
}

TEST_CASE("while a running job backs off after refusals, starts already sent are not charged") {
  Restarted run(21);
  const JobId other = run.cluster.Submit("other", Gang(1));
  for (uint32_t task = 1; task <= 20; ++task) {  // another job blames the node each time, too
    Refuse(run.cluster, run.job, task, false, "why");
    run.cluster.Settle();
    run.cluster.Must(NodeRefused{.id = run.cluster.node_id("n1"),
                                 .refusals = run.cluster.node("n1").status.refusals,
                                 .backoff_until = run.cluster.node("n1").status.backoff_until,
                                 .job = other,
                                 .message = "why"});
  }
  CHECK(run.State() == "Running");
  CHECK(run.cluster.status(run.job).refusals.starts == 3);
}

TEST_CASE(
    "starts that nodes refuse repeatedly are retried with growing back-off, then fail the job") {
  TestCluster cluster;
  cluster.AddNodes("n", 40);
  const JobId job = cluster.Submit("j", Gang(1));
  Duration waited = absl::ZeroDuration();
  for (int start = 1; start < kMaxRefusedStarts; ++start) {
    cluster.Settle();
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, 0, false, "cannot fork");
    cluster.Settle();
    if (start <= 2) continue;  // on another node, at once
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

TEST_CASE("while nodes back off the reason says how many, until when, for which job, and why") {
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
        absl::StrCat("0 of 3 tasks fit: 3 nodes are backing off until ",
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

// ---- Messages of jobs that ran

TEST_CASE("the job's message quotes its agent, and names lack of memory") {
  const int asked_gib = GENERATE(2, 0);
  Running run(testing::JobShape{.groups = {{.name = "worker", .cpu = 4, .memory_gib = asked_gib}}});
  run.cluster.Must(TaskReported{.task = {run.job, 0},
                                .attempt = 1,
                                .state = ReportState::kExited,
                                .exit_code = 137,
                                .exit_signal = 9,
                                .message = absl::StrCat(kOutOfMemory, " 1 of its processes")});
  run.cluster.Settle();
  CHECK(run.State() == "Failed");
  CHECK(run.Message() == absl::StrCat("worker-0 ran out of memory on n1",
                                      asked_gib == 0 ? "" : ": it requested 2Gi", " (exit 137)"));
}

TEST_CASE("a missing command is named in the job's message") {
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
