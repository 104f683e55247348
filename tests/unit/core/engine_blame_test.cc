// Blame for a failed start: a node is cordoned for its own faults, never for what one user does.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/engine/plan.h"
#include "tests/unit/core/testing/evictions.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::kSecond;
using testing::TestCluster;

bool NoNodeIsBlamed(const TestCluster& cluster) {
  bool none = cluster.state().backoffs().empty();
  cluster.state().nodes().ForEach([&](NodeId, const Node& node) {
    none = none && node.status.refusals == 0 && !node.status.cordoned && !node.status.draining;
  });
  return none;
}

void Refuse(TestCluster& cluster, JobId job, const std::string& message = "cannot fork",
            bool nobodys_fault = false) {
  cluster.Must(TaskReported{.task = {job, 0},
                            .attempt = cluster.job(job).tasks[0].attempt,
                            .state = ReportState::kRefused,
                            .message = message,
                            .nobodys_fault = nobodys_fault});
  cluster.Settle();
}

JobId SubmitWith(TestCluster& cluster, const std::string& name, Duration prepare_timeout,
                 bool has_image = false) {
  const QueueId queue = cluster.state().FindQueue("default") == nullptr
                            ? cluster.AddQueue("default")
                            : cluster.queue_id("default");
  JobSpec spec = testing::MakeJob(name, queue, Gang(1));
  spec.groups[0].has_image = has_image;
  spec.prepare_timeout = prepare_timeout;
  const JobId id = cluster.state().next_job_id();
  cluster.Must(JobSubmitted{.id = id, .spec = std::move(spec)});
  cluster.Settle();
  return id;
}

// ---- prepareTimeout

TEST_CASE("an impossible prepareTimeout fails its job with a message and blames no node") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  for (int number = 0; number < 8; ++number) {
    const JobId job = SubmitWith(cluster, absl::StrCat("j", number), absl::Milliseconds(1));
    for (int start = 0; start < 2; ++start) {
      REQUIRE(cluster.Tasks(job) == "B");
      cluster.Advance(absl::Milliseconds(1));
      cluster.GoneAll(job);
    }
    CHECK(cluster.StateOf(job) == "Failed");
    CHECK(cluster.status(job).starts == 2);
    CHECK(cluster.status(job).message ==
          "worker-0 was not prepared within 1ms (prepareTimeout) on n1 and n2");
    CHECK(NoNodeIsBlamed(cluster));
  }
}

TEST_CASE("a node that prepares nothing within the default time is blamed") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId job = SubmitWith(cluster, "j", kDefaultPrepareTimeout);
  cluster.Advance(kDefaultPrepareTimeout);
  CHECK(cluster.node("n1").status.refusals == 1);
  CHECK(cluster.node("n1").status.refusal == "a task was not prepared in time");
  cluster.GoneAll(job);
  CHECK(cluster.Where(job) == "n2");
  CHECK(cluster.status(job).message ==
        "worker-0 was not prepared within 1m (prepareTimeout) on n1");
}

// ---- Failures that are the fault of neither node nor job

TEST_CASE("an image not unpacked in time blames no node, and the next attempt may find it") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  for (int number = 0; number < 6; ++number) {
    const JobId job =
        SubmitWith(cluster, absl::StrCat("j", number), kDefaultPrepareTimeout, /*has_image=*/true);
    for (const char* node : {"n1", "n2"}) {
      REQUIRE(cluster.Where(job) == node);
      cluster.Advance(kDefaultPrepareTimeout);
      cluster.GoneAll(job);
      CHECK(cluster.status(job).message ==
            absl::StrCat("worker-0 was not prepared within 1m (prepareTimeout) on ", node));
    }
    cluster.Advance(absl::Seconds(10));
    cluster.RunAll(job);
    CHECK(cluster.StateOf(job) == "Running");
    CHECK(cluster.status(job).refusals == Refusals{});
    cluster.Exit(job, 0);
    CHECK(NoNodeIsBlamed(cluster));
  }
}

TEST_CASE("an image with a prepareTimeout below the default is the job's own fault") {
  TestCluster cluster;
  cluster.AddNodes("n", 2);
  const JobId job = SubmitWith(cluster, "j", absl::Seconds(59), /*has_image=*/true);
  for (int start = 0; start < 2; ++start) {
    cluster.Advance(absl::Seconds(59));
    cluster.GoneAll(job);
  }
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(NoNodeIsBlamed(cluster));
}

TEST_CASE("what is nobody's fault is retried elsewhere, then later, then fails the job") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  const JobId job = cluster.Submit("j", Gang(1));
  for (const char* node : {"n1", "n2", "n3"}) {
    cluster.Settle();
    REQUIRE(cluster.Where(job) == node);
    Refuse(cluster, job, "no room for the image", true);
    if (cluster.Where(job) == "-") cluster.Advance(kSecond);
  }
  CHECK(cluster.Tasks(job) == ".");
  CHECK(cluster.Why(job).at(0).code == WaitCode::kNodesBackingOff);
  CHECK(cluster.Why(job).at(0).detail.find("3 nodes are excluded until ") != std::string::npos);
  const JobId other = cluster.Submit("other", Gang(1));  // the nodes accept other jobs
  cluster.Settle();
  CHECK(cluster.Where(other) == "n1");
  cluster.RunAll(other);
  cluster.Exit(other, 0);
  for (int start = 4; start <= kMaxRefusedStarts; ++start) {
    for (int wait = 0; wait < 1000 && cluster.Tasks(job) != "B"; ++wait) cluster.Advance(kSecond);
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job, "no room for the image", true);
  }
  CHECK(cluster.StateOf(job) == "Failed");
  CHECK(cluster.status(job).message.find("worker-0: no room for the image (refused by n") == 0);
  CHECK(cluster.status(job).message.find("; 16 starts in a row were refused") != std::string::npos);
  CHECK(NoNodeIsBlamed(cluster));
}

TEST_CASE("members of one gang: a node at fault is blamed, other nodes are only excluded") {
  TestCluster cluster;
  cluster.AddNodes("n", 4);
  const JobId job = cluster.Submit("j", Gang(2));
  cluster.Settle();
  REQUIRE(cluster.Where(job) == "n1 n2");
  cluster.Must(TaskReported{.task = {job, 1},
                            .attempt = 1,
                            .state = ReportState::kRefused,
                            .message = "no room for the image",
                            .nobodys_fault = true});
  Refuse(cluster, job);
  CHECK(cluster.node("n1").status.refusals == 1);
  CHECK(cluster.node("n1").status.refusal == "cannot fork");
  CHECK(cluster.node("n2").status.refusals == 0);
  CHECK(cluster.Where(job) == "n3 n4");
}

// ---- Task limit of a node

struct Full {
  explicit Full(int nodes, int32_t most) {
    for (int number = 1; number <= nodes; ++number) {
      NodeSpec spec = testing::MakeNode(absl::StrCat("n", number), {});
      spec.max_tasks = most;
      const NodeId id = cluster.state().next_node_id();
      cluster.Must(NodeRegistered{.id = id, .spec = spec, .epoch = 1, .agent_id = spec.name});
    }
  }
  TestCluster cluster;
};

testing::JobShape AskingForNothing(int tasks, Strategy strategy = Strategy::kDefault) {
  testing::JobShape shape = {.groups = {{.name = "worker", .replicas = tasks, .cpu = 0}}};
  shape.strategy = strategy;
  return shape;
}

TEST_CASE("a node gets no more tasks than its limit, whatever they request, and the rest wait") {
  Full full(2, 5);
  TestCluster& cluster = full.cluster;
  std::vector<JobId> jobs;
  for (int number = 0; number < 13; ++number) {
    jobs.push_back(cluster.Submit(absl::StrCat("j", number), AskingForNothing(1)));
  }
  cluster.Settle();
  for (int number = 0; number < 10; ++number) CHECK(cluster.Tasks(jobs[number]) == "B");
  CHECK(cluster.node("n1").tasks.size() == 5);
  CHECK(cluster.node("n2").tasks.size() == 5);
  CHECK(cluster.state().full_nodes().size() == 2);
  const WaitReason why = cluster.Why(jobs[10]).at(0);
  CHECK(why.code == WaitCode::kInsufficientResources);
  CHECK(why.resource == "tasks");
  CHECK(why.needed == kWhole);
  CHECK(why.free == 0);
  CHECK(why.detail == "0 of 1 tasks fit: 2 nodes are at the limit of tasks per node");
  REQUIRE(CheckConsistency(cluster.state()).ok());
  cluster.RunAll(jobs[3]);
  cluster.Exit(jobs[3], 0);
  cluster.Settle();
  CHECK(cluster.Tasks(jobs[10]) == "B");
  CHECK(cluster.Tasks(jobs[11]) == ".");
  CHECK(cluster
            .Try(TasksBound{.job = jobs[11],
                            .gang = true,
                            .placements = {{.task = 0, .node = cluster.node_id("n1")}}})
            .message() == "node n1 (1) is at its limit of tasks");
}

TEST_CASE("a gang is placed by the task limits of its nodes") {
  const Strategy strategy = GENERATE(Strategy::kBinpack, Strategy::kSpread, Strategy::kColocate);
  Full full(3, 4);
  TestCluster& cluster = full.cluster;
  const JobId gang = cluster.Submit("gang", AskingForNothing(10, strategy));
  cluster.Settle();
  REQUIRE(cluster.Tasks(gang) == "BBBBBBBBBB");
  const JobId next = cluster.Submit("next", AskingForNothing(3, strategy));
  cluster.Settle();
  CHECK(cluster.Tasks(next) == "...");
  CHECK(cluster.Why(next).at(0).resource == "tasks");
  const JobId never = cluster.Submit("never", AskingForNothing(13, strategy));
  cluster.Settle();
  CHECK(cluster.Why(never).at(0).code == WaitCode::kNeverFits);
  CHECK(cluster.Why(never).at(0).detail ==
        "all matching nodes together, even empty, hold 12 of 13 tasks of group worker");
}

// Otherwise tasks of one user that request nothing could block the GPUs for everyone.
TEST_CASE("a job of higher priority evicts from a node full of tasks that request nothing") {
  testing::Contest contest({"allocate", "preempt"});
  NodeSpec spec = testing::MakeNode("n1", {.gpus = 8});
  spec.max_tasks = 3;
  contest.Must(NodeRegistered{
      .id = contest.state().next_node_id(), .spec = std::move(spec), .epoch = 1, .agent_id = "n1"});
  for (int number = 1; number <= 3; ++number) {
    contest.Run(absl::StrCat("idle", number), Gang(1, 0));
  }
  const JobId high = contest.Submit("high", Gang(1, 8, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1\nrelease idle3: 0 for high\n");
  CHECK(contest.state().full_nodes().size() == 1);
  contest.Advance(kSecond);
  CHECK(contest.Tasks(high) == ".");  // it is nominated there, and keeps its place
  contest.Leave();
  CHECK(contest.Tasks(high) == "B");
  REQUIRE(CheckConsistency(contest.state()).ok());
}

TEST_CASE("a node without a task limit accepts any number of tasks") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const JobId job = cluster.Submit("j", AskingForNothing(5000));
  cluster.Settle();
  CHECK(cluster.node("n1").tasks.size() == 5000);
  CHECK(cluster.StateOf(job) == "Binding");
}

// ---- Number of jobs that count against a node

TEST_CASE("two jobs that take turns never cordon a node, five different ones do") {
  TestCluster cluster;
  cluster.AddNode("n1");
  const auto refused = [&](const std::string& name) {
    const JobId job = cluster.Submit(name, Gang(1));
    cluster.Settle();
    REQUIRE(cluster.Tasks(job) == "B");
    Refuse(cluster, job);
    cluster.Must(JobCancelled{.id = job, .reason = "enough"});
    cluster.Advance(absl::Hours(1));
  };
  const testing::JobShape small = {.groups = {{.cpu = 1}}};
  const JobId turns[] = {cluster.Submit("a", small), cluster.Submit("b", small)};
  for (int turn = 0; turn < 10; ++turn) {
    cluster.Settle();
    for (const JobId job : turns) {
      REQUIRE(cluster.Tasks(job) == "B");
      Refuse(cluster, job);
    }
    cluster.Advance(absl::Minutes(5));
  }
  CHECK_FALSE(cluster.node("n1").status.cordoned);
  CHECK(cluster.node("n1").status.refusals == 10);
  for (const JobId job : turns) cluster.Must(JobCancelled{.id = job, .reason = "enough"});
  cluster.Advance(absl::Hours(1));
  CHECK(cluster.node("n1").status.refused_jobs == 2);
  refused("c");
  refused("d");
  CHECK_FALSE(cluster.node("n1").status.cordoned);
  refused("e");
  CHECK(cluster.node("n1").status.cordoned);
  CHECK(cluster.node("n1").status.reason ==
        "starts refused: 5 jobs in a row, the last: cannot fork");
}

TEST_CASE("five jobs that are always refused together cordon a node with the fifth incident") {
  TestCluster cluster;
  cluster.AddNode("n1");
  std::vector<JobId> jobs;
  for (int number = 0; number < 5; ++number) {
    jobs.push_back(cluster.Submit(absl::StrCat("j", number), {.groups = {{.cpu = 1}}}));
  }
  for (int incident = 1; incident <= 5; ++incident) {
    CHECK_FALSE(cluster.node("n1").status.cordoned);
    cluster.Settle();
    for (JobId job : jobs) {
      REQUIRE(cluster.Tasks(job) == "B");
      Refuse(cluster, job);
    }
    CHECK(cluster.node("n1").status.refusals == incident);
    CHECK(cluster.node("n1").status.refused_jobs == incident);
    cluster.Advance(absl::Minutes(5));
  }
  CHECK(cluster.node("n1").status.cordoned);
}

}  // namespace
}  // namespace berth
