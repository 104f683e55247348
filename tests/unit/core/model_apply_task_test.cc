#include <catch2/catch.hpp>
#include <optional>

#include "core/model/transitions.h"
#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

// A job of two one-GPU tasks; n has 4 GPUs.
struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 4);
  JobId id = Submit(JobOf("j", q, {GroupOfGpus("w", 2, 1)}));

  void BindBoth() { REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, n, Devices({3})}}).ok()); }
  // Brings task 0 into the state, by events only.
  void Bring(TaskState to, bool requeue = true) {
    if (to == TaskState::kPending) return;
    BindBoth();
    if (to == TaskState::kBound) return;
    if (to == TaskState::kLost) {
      REQUIRE(Try(NodeSilenced{n}).ok());
      return;
    }
    REQUIRE(Report(id, 0, ReportState::kPrepared).ok());
    if (to == TaskState::kPrepared) return;
    REQUIRE(Try(TasksStarted{id, {0}}).ok());
    if (to == TaskState::kStarting) return;
    REQUIRE(Report(id, 0, ReportState::kRunning).ok());
    if (to == TaskState::kRunning) return;
    if (to == TaskState::kReleasing) {
      REQUIRE(Try(TasksReleased{id, {0}, requeue, ReleaseReason::kRestart}).ok());
      return;
    }
    REQUIRE(Report(id, 0, ReportState::kExited, to == TaskState::kSucceeded ? 0 : 1).ok());
  }
};

TEST_CASE_METHOD(Fixture, "binding allocates what the tasks request", "[model]") {
  BindBoth();
  const ResourceKind gpu = *state.interner().FindKind("gpu");
  CHECK(node(n).allocated[gpu] == 2 * kWhole);
  CHECK(node(n).devices_used.whole == Devices({0, 3}));
  CHECK(node(n).tasks.size() == 2);
  CHECK(queue(q).allocated[kCpu] == 2000);
  CHECK(queue(q).pending.IsZero());
  CHECK(queue(q).running_jobs == 1);
  CHECK(task(id, 0).attempt == 1);
  CHECK(task(id, 0).since == now);
  CHECK(job(id).status.starts == 1);
  CHECK(state.free().FreeOf(n)[gpu] == 2 * kWhole);
  CHECK(state.free().total()[kCpu] == 62'000);
}

TEST_CASE_METHOD(Fixture, "a task passes through its states and frees its resources", "[model]") {
  BindBoth();
  REQUIRE(Report(id, 0, ReportState::kPrepared).ok());
  REQUIRE(Try(TasksStarted{id, {0}}).ok());
  now += absl::Seconds(2);
  REQUIRE(Report(id, 0, ReportState::kRunning).ok());
  CHECK(task(id, 0).start == now);
  REQUIRE(Report(id, 0, ReportState::kExited).ok());
  CHECK(task(id, 0).state == TaskState::kSucceeded);
  CHECK(task(id, 0).node == n);  // for history
  CHECK(node(n).tasks.size() == 1);
  CHECK(node(n).devices_used.whole == Devices({3}));
  REQUIRE(Try(TasksRequeued{id, {0}}).ok());
  CHECK(task(id, 0).state == TaskState::kPending);
  REQUIRE(Bind(id, {{0, n, Devices({1})}}, false).ok());
  CHECK(task(id, 0).attempt == 2);
  CHECK(job(id).status.starts == 1);  // a replacement
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "every report in every state", "[model]") {
  using S = TaskState;
  using R = ReportState;
  struct Row {
    S from;
    R report;
    std::optional<S> to;  // nullopt: rejected
  };
  const Row row = GENERATE(
      Row{S::kPending, R::kPrepared, {}}, Row{S::kPending, R::kExited, {}},
      Row{S::kBound, R::kPrepared, S::kPrepared}, Row{S::kBound, R::kRefused, S::kFailed},
      Row{S::kBound, R::kRunning, S::kRunning}, Row{S::kBound, R::kExited, S::kSucceeded},
      Row{S::kPrepared, R::kPrepared, {}}, Row{S::kPrepared, R::kRefused, S::kFailed},
      Row{S::kPrepared, R::kRunning, S::kRunning}, Row{S::kPrepared, R::kExited, S::kSucceeded},
      Row{S::kStarting, R::kPrepared, {}}, Row{S::kStarting, R::kRefused, S::kFailed},
      Row{S::kStarting, R::kRunning, S::kRunning}, Row{S::kStarting, R::kExited, S::kSucceeded},
      Row{S::kRunning, R::kPrepared, {}}, Row{S::kRunning, R::kRefused, {}},
      Row{S::kRunning, R::kRunning, {}}, Row{S::kRunning, R::kExited, S::kSucceeded},
      Row{S::kReleasing, R::kPrepared, {}}, Row{S::kReleasing, R::kRefused, S::kPending},
      Row{S::kReleasing, R::kRunning, {}}, Row{S::kReleasing, R::kExited, S::kSucceeded},
      Row{S::kLost, R::kPrepared, {}}, Row{S::kLost, R::kExited, {}},
      Row{S::kSucceeded, R::kExited, {}}, Row{S::kFailed, R::kRunning, {}});
  Bring(row.from);
  const uint64_t before = Fingerprint(state);
  const absl::Status status = Report(id, 0, row.report);
  INFO(static_cast<int>(row.from) << " " << static_cast<int>(row.report) << " "
                                  << std::string(status.message()));
  CHECK(status.ok() == row.to.has_value());
  CHECK(task(id, 0).state == row.to.value_or(row.from));
  if (!row.to.has_value()) {
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(Fingerprint(state) == before);
  }
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "the cause of an attempt's end decides whose fault it was", "[model]") {
  struct Row {
    ExitCause cause;
    int32_t code;
    TaskState state;
    EndCause end;
  };
  using X = ExitCause;
  const Row row = GENERATE(Row{X::kItself, 0, TaskState::kSucceeded, EndCause::kExit},
                           Row{X::kItself, 137, TaskState::kFailed, EndCause::kExit},
                           Row{X::kSupervisorLost, 0, TaskState::kFailed, EndCause::kExit},
                           Row{X::kKilled, 0, TaskState::kFailed, EndCause::kNodeLost},
                           Row{X::kLeaseLapsed, 0, TaskState::kFailed, EndCause::kNodeLost},
                           Row{X::kReboot, 0, TaskState::kFailed, EndCause::kNodeLost},
                           Row{X::kGone, 0, TaskState::kFailed, EndCause::kNodeLost});
  Bring(TaskState::kRunning);
  REQUIRE(Report(id, 0, ReportState::kExited, row.code, row.cause).ok());
  CHECK(task(id, 0).state == row.state);
  CHECK(task(id, 0).end_cause == row.end);
  CHECK(task(id, 0).exit_code == row.code);
}

TEST_CASE_METHOD(Fixture, "a released task ends in the state that the release requested",
                 "[model]") {
  SECTION("not to run again") {
    Bring(TaskState::kReleasing, false);
    REQUIRE(Report(id, 0, ReportState::kExited, 143, ExitCause::kKilled).ok());
    CHECK(task(id, 0).state == TaskState::kFailed);
    CHECK(task(id, 0).end_cause == EndCause::kStopped);
  }
  SECTION("to run again") {
    Bring(TaskState::kReleasing, true);
    REQUIRE(Report(id, 0, ReportState::kExited, 143, ExitCause::kKilled).ok());
    CHECK(task(id, 0).state == TaskState::kPending);
    CHECK(task(id, 0).end_cause == EndCause::kStopped);
  }
  SECTION("the last release counts") {
    Bring(TaskState::kReleasing, true);
    REQUIRE(Try(TasksReleased{id, {0}, false, ReleaseReason::kCancelled}).ok());
    REQUIRE(Report(id, 0, ReportState::kExited, 143, ExitCause::kKilled).ok());
    CHECK(task(id, 0).state == TaskState::kFailed);
  }
  SECTION("it had just succeeded by itself") {
    Bring(TaskState::kReleasing, false);
    REQUIRE(Report(id, 0, ReportState::kExited, 0, ExitCause::kItself).ok());
    CHECK(task(id, 0).state == TaskState::kSucceeded);
  }
  SECTION("while its node is silent") {
    Bring(TaskState::kLost);
    REQUIRE(Try(TasksReleased{id, {0}, true, ReleaseReason::kRestart}).ok());
    CHECK(task(id, 0).state == TaskState::kLost);
    CHECK(Releasing(task(id, 0)));
    REQUIRE(Try(NodeFenced{n}).ok());
    CHECK(task(id, 0).state == TaskState::kPending);
    CHECK(task(id, 1).state == TaskState::kFailed);
  }
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "a task's last message is kept until its next attempt", "[model]") {
  Bring(TaskState::kBound);
  TaskReported report;
  report.task = {id, 0};
  report.attempt = 1;
  report.state = ReportState::kRefused;
  report.message = "no such user";
  REQUIRE(Try(report).ok());
  CHECK(task(id, 0).end_cause == EndCause::kRefused);
  CHECK(state.TaskMessage({id, 0}) == "no such user");
  CHECK(state.TaskMessage({id, 1}).empty());
  REQUIRE(Try(TasksRequeued{id, {0}}).ok());
  CHECK(state.TaskMessage({id, 0}) == "no such user");
  REQUIRE(Bind(id, {{0, n, Devices({1})}}).ok());
  CHECK(state.TaskMessage({id, 0}).empty());
}

TEST_CASE_METHOD(Fixture, "a node's refusals are cleared once a task runs there", "[model]") {
  Bring(TaskState::kBound);
  REQUIRE(Try(NodeRefused{n, 3, now + absl::Seconds(4), JobId{7}, "cannot fork"}).ok());
  TaskReported report;
  report.task = {id, 0};
  report.attempt = 1;
  report.state = ReportState::kPrepared;
  SECTION("not when a task is prepared") {
    REQUIRE(Try(report).ok());
    CHECK(node(n).status.refusals == 3);
    CHECK(node(n).status.backoff_until == now + absl::Seconds(4));
    report.state = ReportState::kRunning;
    REQUIRE(Try(report).ok());
  }
  SECTION("old logs: already when a task is prepared") {
    report.trust_at_running = false;
    REQUIRE(Try(report).ok());
  }
  CHECK(node(n).status.refusals == 0);
  CHECK(node(n).status.refused_jobs == 0);
  CHECK(node(n).status.backoff_until == absl::InfinitePast());
  CHECK(node(n).status.refusal.empty());
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "old logs: a running task does not clear its node's refusals",
                 "[model]") {
  Bring(TaskState::kBound);
  REQUIRE(Try(NodeRefused{n, 3, now + absl::Seconds(4), JobId{7}, "cannot fork"}).ok());
  TaskReported report;
  report.task = {id, 0};
  report.attempt = 1;
  report.state = ReportState::kRunning;
  report.trust_at_running = false;
  REQUIRE(Try(report).ok());
  CHECK(node(n).status.refusals == 3);
}

TEST_CASE_METHOD(Fixture, "reports of other attempts and unknown tasks are rejected", "[model]") {
  Bring(TaskState::kRunning);
  TaskReported report;
  report.task = {id, 0};
  report.attempt = 2;
  report.state = ReportState::kExited;
  CHECK(Try(report).message() ==
        "task w-0 of job j (1): attempt 2 is over; the latest is 1, Running");
  report.task = {id, 9};
  CHECK(Try(report).code() == absl::StatusCode::kNotFound);
  report.task = {JobId{99}, 0};
  CHECK(Try(report).code() == absl::StatusCode::kNotFound);
}

TEST_CASE_METHOD(Fixture, "bindings are fully checked again", "[model]") {
  const JobId other = Submit(JobOf("other", q, {GroupOfGpus("w", 1, 2)}));
  REQUIRE(Bind(other, {{0, n, Devices({0, 1})}}).ok());
  NodeSpec sick = NodeWith("sick", 1);
  sick.devices[0].unhealthy = true;
  const NodeId sick_id = AddNode(sick);
  NodeSpec small = NodeWith("small", 1);
  small.cpu_millis = 999;
  const NodeId small_id = AddNode(small);
  const NodeId cordoned = AddNode("cordoned", 1);
  REQUIRE(Try(NodeSteered{cordoned, true, false, ""}).ok());
  const NodeId backoff = AddNode("backoff", 1);
  REQUIRE(Try(NodeRefused{backoff, 1, now + absl::Seconds(1), {}, ""}).ok());
  struct Row {
    JobId job;
    std::vector<Placement> placements;
    std::string message;
  };
  const std::vector<Row> rows = {
      {JobId{99}, {{0, n, {}}}, "no job 99"},
      {id, {}, "job j (1): no tasks to be bound"},
      {id, {{2, n, Devices({2})}}, "job j (1) has no task 2"},
      {other, {{0, n, Devices({2, 3})}}, "task w-0 of job other (2) is Bound and cannot be bound"},
      {id, {{0, NodeId{77}, Devices({2})}}, "no node 77"},
      {id, {{0, cordoned, Devices({0})}}, "node cordoned (4) takes no tasks now"},
      {id, {{0, backoff, Devices({0})}}, "node backoff (5) takes no tasks now"},
      {id, {{0, n, Devices({1})}}, "node n (1): a device is in use or reserved by another task"},
      {id, {{0, n, Devices({4})}}, "node n (1) lacks these devices, or they are unhealthy"},
      {id,
       {{0, sick_id, Devices({0})}},
       "node sick (2) lacks these devices, or they are unhealthy"},
      {id, {{0, n, {}}}, "node n (1): 1 devices of kind gpu requested, 0 given"},
      {id, {{0, n, Devices({2, 3})}}, "node n (1): 1 devices of kind gpu requested, 2 given"},
      {id, {{0, small_id, Devices({0})}}, "node small (3): cpu requested 1000, free 999"},
      // The second counts what the first took; the first is undone.
      {id,
       {{0, n, Devices({2})}, {1, n, Devices({2})}},
       "node n (1): a device is in use or reserved by another task"},
      {id,
       {{0, n, Devices({2})}, {0, n, Devices({3})}},
       "task w-0 of job j (1) is Bound and cannot be bound"},
  };
  const uint64_t before = Fingerprint(state);
  for (const Row& row : rows) {
    CHECK(std::string(Bind(row.job, row.placements).message()) == row.message);
    CHECK(Fingerprint(state) == before);
    CHECK(CheckConsistency(state).ok());
  }
}

TEST_CASE_METHOD(Fixture, "bindings obey the rules of the queues", "[model]") {
  const std::vector<Placement> both = {{0, n, Devices({0})}, {1, n, Devices({1})}};
  QueueSpec spec;
  spec.name = "q";
  SECTION("limit") {
    spec.limit = {{"gpu", kWhole}};
    REQUIRE(Try(QueueUpdated{q, spec}).ok());
    CHECK(Bind(id, both).message() ==
          "job j (1): over a limit of queue q (1) or of a queue above it");
  }
  SECTION("running jobs") {
    spec.max_running_jobs = 1;
    REQUIRE(Try(QueueUpdated{q, spec}).ok());
    const JobId other = Submit(JobOf("other", q, {GroupOfGpus("w", 1, 0)}));
    REQUIRE(Bind(other, {{0, n, {}}}).ok());
    CHECK(Bind(id, both).message() == "queue q (1) is at its limit of 1 running jobs");
  }
  SECTION("closed") {
    REQUIRE(Try(QueueOpened{kRootQueue, false}).ok());
    CHECK(Bind(id, both).message() == "queue root (0) is closed: job j (1) cannot start");
  }
  SECTION("closed, but the job already runs") {
    REQUIRE(Bind(id, {{0, n, Devices({0})}}).ok());
    REQUIRE(Try(QueueOpened{q, false}).ok());
    CHECK(Bind(id, {{1, n, Devices({1})}}, false).ok());
  }
  SECTION("suspended, cancelled, held") {
    REQUIRE(SetState(id, JobState::kHeld).ok());
    CHECK(Bind(id, both).message() == "job j (1) is Held: its tasks cannot be bound");
    REQUIRE(Try(JobSuspended{id, true}).ok());
    CHECK(Bind(id, both).message() == "job j (1) is suspended");
    REQUIRE(Try(JobCancelled{id, ""}).ok());
    CHECK(Bind(id, both).message() == "job j (1) is cancelled");
  }
}

TEST_CASE_METHOD(Fixture, "decisions about tasks are rejected in other states", "[model]") {
  Bring(TaskState::kRunning);  // task 1 is Bound
  struct Row {
    EventBody event;
    std::string message;
  };
  const std::vector<Row> rows = {
      {TasksStarted{JobId{99}, {0}}, "no job 99"},
      {TasksStarted{id, {}}, "job j (1): no tasks to be started"},
      {TasksStarted{id, {7}}, "job j (1) has no task 7"},
      {TasksStarted{id, {0}}, "task w-0 of job j (1) is Running and cannot be started"},
      {TasksStarted{id, {1}}, "task w-1 of job j (1) is Bound and cannot be started"},
      {TasksReleased{id, {0, 0}, false, ReleaseReason::kDrain},
       "task w-0 of job j (1) is named twice"},
      {TasksRequeued{id, {1}}, "task w-1 of job j (1) is Bound and cannot be requeued"},
  };
  const uint64_t before = Fingerprint(state);
  for (const Row& row : rows) {
    CHECK(std::string(Try(row.event).message()) == row.message);
    CHECK(Fingerprint(state) == before);
  }
  REQUIRE(Report(id, 0, ReportState::kExited).ok());
  CHECK(Try(TasksReleased{id, {0}, false, ReleaseReason::kDrain}).message() ==
        "task w-0 of job j (1) is Succeeded and cannot be released");
}

}  // namespace
}  // namespace berth
