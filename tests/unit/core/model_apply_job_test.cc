#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 4);
  JobSpec spec = JobOf("j", q, {GroupOfGpus("w", 2, 1)});

  void End(JobId id, JobState outcome = JobState::kSucceeded) {
    JobStatus status = job(id).status;
    status.state = outcome;
    status.end = now;
    REQUIRE(Try(JobStatusChanged{id, status}).ok());
  }
};

TEST_CASE_METHOD(Fixture, "a submitted job is pending, and its queue counts it", "[model]") {
  spec.priority = 7;
  spec.labels = {{"team", "a"}};
  const JobId id = Submit(spec);
  CHECK(state.FindJob("j") == &job(id));
  CHECK(job(id).submit == now);
  CHECK(job(id).tasks.size() == 2);
  CHECK(job(id).status.state == JobState::kPending);
  CHECK(SpecOf(state, job(id)) == spec);
  const ResourceKind gpu = *state.interner().FindKind("gpu");
  for (QueueId id_of : {q, kRootQueue}) {
    CHECK(queue(id_of).pending[gpu] == 2 * kWhole);
    CHECK(queue(id_of).jobs == 1);
    CHECK(queue(id_of).active_jobs == 1);
    CHECK(queue(id_of).running_jobs == 0);
  }
  CHECK(state.jobs_in(JobState::kPending) == 1);
  CHECK(state.tasks_in(TaskState::kPending) == 2);
  CHECK(state.unsettled().contains(id));
}

TEST_CASE_METHOD(Fixture, "pending tasks of an ended job no longer count", "[model]") {
  const JobId id = Submit(spec);
  REQUIRE(SetState(id, JobState::kHeld).ok());
  CHECK(queue(q).held_jobs == 1);
  CHECK(state.tasks_in(TaskState::kPending) == 2);
  End(id, JobState::kCancelled);
  CHECK(state.tasks_in(TaskState::kPending) == 0);
  CHECK(CheckConsistency(state).ok());
  CHECK(queue(q).pending.IsZero());
  CHECK(queue(q).held_jobs == 0);
  CHECK(queue(q).active_jobs == 0);
  CHECK(queue(q).jobs == 1);
  REQUIRE(Try(JobDeleted{id}).ok());
  CHECK(queue(q).jobs == 0);
  CHECK(state.jobs().empty());
  CHECK(state.FindJob("j") == nullptr);
  CHECK(state.interner().shapes().empty());
  CHECK(state.tasks_in(TaskState::kPending) == 0);
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "requests are recorded, and repeating one changes nothing", "[model]") {
  const JobId id = Submit(spec);
  REQUIRE(Try(JobSuspended{id, true}).ok());
  CHECK(job(id).status.suspended);
  REQUIRE(Try(JobCancelled{id, "wrong data"}).ok());
  REQUIRE(Try(JobCancelled{id, "again"}).ok());
  CHECK(job(id).status.cancelled);
  CHECK(job(id).status.message == "wrong data");
  REQUIRE(Try(JobUpdated{id, 3, {{"a", "b"}}}).ok());
  CHECK(job(id).priority == 3);
  CHECK(job(id).labels.at("a") == "b");
}

TEST_CASE_METHOD(Fixture, "a walltime may change while a job is pending and while it runs",
                 "[model]") {
  spec.walltime = absl::Hours(1);
  const JobId id = Submit(spec);
  REQUIRE(Try(JobUpdated{id, 0, {}, absl::Hours(3)}).ok());
  CHECK(job(id).walltime == absl::Hours(3));
  REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, n, Devices({1})}}).ok());
  for (const uint32_t task : {0u, 1u}) REQUIRE(Report(id, task, ReportState::kRunning).ok());
  JobStatus status = job(id).status;
  status.state = JobState::kRunning;
  status.start = now;
  REQUIRE(Try(JobStatusChanged{id, status}).ok());
  now += absl::Minutes(30);
  const auto ends_at = [&](Time end) {
    CHECK(PlannedEnd(job(id)) == end);
    CHECK(state.planned_ends().contains({end, id}));
    CHECK(state.planned_ends().size() == 1);
    CHECK(state.timers().contains({end, id}));
    CHECK(CheckConsistency(state).ok());
  };
  ends_at(status.start + absl::Hours(3));
  REQUIRE(Try(JobUpdated{id, 0, {}, absl::Hours(2)}).ok());
  ends_at(status.start + absl::Hours(2));
  REQUIRE(Try(JobUpdated{id, 0, {}, absl::Hours(9)}).ok());
  ends_at(status.start + absl::Hours(9));
  // It has run for 30 minutes.
  CHECK(absl::IsFailedPrecondition(Try(JobUpdated{id, 0, {}, absl::Minutes(30)})));
  CHECK(absl::IsInvalidArgument(Try(JobUpdated{id, 0, {}, absl::ZeroDuration()})));
  REQUIRE(Try(JobUpdated{id, 1, {}}).ok());  // no walltime in the update
  ends_at(status.start + absl::Hours(9));
  REQUIRE(Try(JobUpdated{id, 1, {}, absl::InfiniteDuration()}).ok());
  CHECK(state.planned_ends().empty());
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "a forced cancel ends tasks on silent nodes, and nothing else",
                 "[model]") {
  const NodeId other = AddNode("other", 4);
  spec.on_node_loss = NodeLossPolicy::kKeep;
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, other, Devices({0})}}).ok());
  REQUIRE(Try(NodeSilenced{n}).ok());
  REQUIRE(Try(JobCancelled{id, "stop"}).ok());
  CHECK(task(id, 0).state == TaskState::kLost);
  REQUIRE(Try(JobCancelled{id, "stop now", true}).ok());
  CHECK(job(id).status.forced);
  CHECK(job(id).status.message == "stop now");
  CHECK(task(id, 0).state == TaskState::kFailed);
  CHECK(task(id, 0).end_cause == EndCause::kStopped);
  CHECK(state.TaskMessage({id, 0}) ==
        "ended by force while its node was silent; it may still run there");
  CHECK(node(n).tasks.empty());
  CHECK(task(id, 1).state == TaskState::kBound);
  CHECK(CheckConsistency(state).ok());
}

// The state of a task that a forced cancel has given up.
void CheckGivenUp(const Fixture& world, JobId id, uint32_t index) {
  const Task& task = world.task(id, index);
  CHECK(task.state == TaskState::kFailed);
  CHECK(task.end_cause == EndCause::kStopped);
  CHECK(world.state.TaskMessage({id, index}) ==
        "ended by force while its node was silent; it may still run there");
  CHECK(CheckConsistency(world.state).ok());
}

TEST_CASE_METHOD(Fixture, "a forced cancel applies to nodes that fall silent after it", "[model]") {
  const NodeId other = AddNode("other", 4);
  spec.on_node_loss = GENERATE(NodeLossPolicy::kFence, NodeLossPolicy::kKeep);
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, other, Devices({0})}}).ok());
  for (const uint32_t task : {0u, 1u}) REQUIRE(Report(id, task, ReportState::kRunning).ok());

  SECTION("force, then silence") {
    REQUIRE(Try(JobCancelled{id, "stop now", true}).ok());
    const bool released = GENERATE(false, true);  // whether the lifecycle stage ran in between
    if (released) {
      REQUIRE(Try(TasksReleased{id, {0, 1}, false, ReleaseReason::kCancelled}).ok());
    }
    REQUIRE(Try(NodeSilenced{n}).ok());
    CheckGivenUp(*this, id, 0);
    CHECK(node(n).tasks.empty());
    CHECK(task(id, 1).state == (released ? TaskState::kReleasing : TaskState::kRunning));
  }
  SECTION("silence, force, then silence of a second node") {
    REQUIRE(Try(NodeSilenced{n}).ok());
    REQUIRE(Try(JobCancelled{id, "stop now", true}).ok());
    CheckGivenUp(*this, id, 0);
    CHECK(task(id, 1).state == TaskState::kRunning);
    REQUIRE(Try(NodeSilenced{other}).ok());
    CheckGivenUp(*this, id, 1);
    CHECK(job(id).occupying == 0);
  }
  SECTION("a pending restart does not happen") {
    REQUIRE(Try(TasksReleased{id, {0}, true, ReleaseReason::kRestart}).ok());
    REQUIRE(Try(JobCancelled{id, "stop now", true}).ok());
    REQUIRE(Try(NodeSilenced{n}).ok());
    CheckGivenUp(*this, id, 0);
  }
}

TEST_CASE_METHOD(Fixture, "old logs: a forced task on a silent node waits for the fence",
                 "[model]") {
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, n, Devices({1})}}).ok());
  REQUIRE(Try(JobCancelled{id, "stop now", true}).ok());
  REQUIRE(Try(NodeSilenced{.id = n, .ends_forced = false}).ok());
  CHECK(task(id, 0).state == TaskState::kLost);
  REQUIRE(Try(JobCancelled{id, "again", true}).ok());  // repeated, it ends tasks lost by then
  CheckGivenUp(*this, id, 0);
  CheckGivenUp(*this, id, 1);
  CHECK(job(id).status.message == "stop now");
}

TEST_CASE_METHOD(Fixture, "a job that others depend on stays, and its end unsettles those jobs",
                 "[model]") {
  const JobId first = Submit(spec);
  spec.name = "k";
  spec.dependencies = {{first, DependencyCondition::kAfterOk}};
  const JobId second = Submit(spec);
  CHECK(state.Dependents(first) == std::vector<JobId>{second});
  StateEditor(state).Settle(second);
  End(first);
  CHECK(state.unsettled().contains(second));
  CHECK(Try(JobDeleted{first}).message() == "job j (1) is still a dependency of job k (2)");
  StateEditor(state).Settle(first);
  REQUIRE(Bind(second, {{0, n, Devices({0})}, {1, n, Devices({1})}}).ok());
  CHECK(state.Dependents(first).empty());  // it has started, so the dependency is dropped
  CHECK(state.unsettled().contains(first));
  REQUIRE(Try(JobDeleted{first}).ok());
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "invalid job events are rejected with a reason, and change nothing",
                 "[model]") {
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{0, n, Devices({0})}, {1, n, Devices({1})}}).ok());
  JobSpec over_spec = JobOf("over", q, {GroupOfGpus("w", 1, 0)});
  const JobId over = Submit(over_spec);
  End(over);
  const QueueId parent = AddQueue("parent");
  const QueueId closed = AddQueue("closed", parent);
  REQUIRE(Try(QueueOpened{closed, false}).ok());
  QueueSpec full_spec;
  full_spec.name = "full";
  full_spec.max_jobs = 1;
  const QueueId full = state.next_queue_id();
  REQUIRE(Try(QueueCreated{full, full_spec}).ok());
  REQUIRE(Submit(JobOf("one", full, {GroupOfGpus("w", 1, 0)})) != JobId{UINT64_MAX});

  const JobId next = state.next_job_id();
  const auto submitted = [&](auto change) {
    JobSpec changed = JobOf("new", q, {GroupOfGpus("w", 2, 1)});
    change(changed);
    return JobSubmitted{next, changed};
  };
  const auto status_of = [&](auto change) {
    JobStatus status = job(id).status;
    change(status);
    return JobStatusChanged{id, status};
  };
  struct Row {
    EventBody event;
    absl::StatusCode code;
    std::string message;
  };
  using C = absl::StatusCode;
  const std::vector<Row> rows = {
      {JobSubmitted{JobId{3}, spec}, C::kFailedPrecondition, "the next job is 4, not 3"},
      {JobSubmitted{JobId{kLastJobId.value + 1}, spec}, C::kFailedPrecondition,
       "job uids end at 9007199254740991"},
      {submitted([](JobSpec& s) { s.name = ""; }), C::kInvalidArgument, "a job needs a name"},
      {submitted([](JobSpec& s) { s.name = "j"; }), C::kAlreadyExists, "job j exists"},
      {submitted([](JobSpec& s) { s.queue = QueueId{77}; }), C::kNotFound, "job new: no queue 77"},
      {submitted([&](JobSpec& s) { s.queue = parent; }), C::kFailedPrecondition,
       "queue parent (2) has children: only a leaf has jobs"},
      {submitted([&](JobSpec& s) { s.queue = closed; }), C::kFailedPrecondition,
       "queue closed (3) is closed"},
      {submitted([&](JobSpec& s) { s.queue = full; }), C::kResourceExhausted,
       "queue full (4) is at its limit of 1 jobs"},
      {submitted([](JobSpec& s) { s.groups.clear(); }), C::kInvalidArgument,
       "job new has no groups"},
      {submitted([](JobSpec& s) { s.groups[0].min_available = 3; }), C::kInvalidArgument,
       "group w of job new: needs 0 <= min_available <= replicas, not 3 and 2"},
      {submitted([](JobSpec& s) { s.groups[0].replicas = 0; }), C::kInvalidArgument,
       "group w of job new: needs 0 <= min_available <= replicas, not 2 and 0"},
      {submitted([](JobSpec& s) { s.groups[0].replicas = 30'001; }), C::kInvalidArgument,
       "job new has 30001 tasks; at most 30000"},
      {submitted([](JobSpec& s) { s.min_available = 1; }), C::kInvalidArgument,
       "job new: min_available must be 2 to 2, not 1"},
      {submitted([](JobSpec& s) { s.groups[0].shape.cpu_millis = -5; }), C::kInvalidArgument,
       "group w of job new: cpu and memory must be 0 to 281474976710656, not -5"},
      {submitted([](JobSpec& s) { s.groups[0].shape.devices[0].count = 129; }), C::kInvalidArgument,
       "group w of job new: gpu must be 0 to 128, not 129"},
      {submitted(
           [](JobSpec& s) { s.groups[0].shape.devices.push_back(s.groups[0].shape.devices[0]); }),
       C::kInvalidArgument, "group w of job new: one request per kind of device (\"gpu\")"},
      {submitted([](JobSpec& s) {
         s.groups[0].depends_on = {{3, GroupCondition::kRunning}};
       }),
       C::kInvalidArgument, "group w depends on group 3, which does not exist"},
      {submitted([](JobSpec& s) {
         s.groups[0].depends_on = {{0, GroupCondition::kRunning}};
       }),
       C::kInvalidArgument, "group w depends on itself in a cycle"},
      {submitted([&](JobSpec& s) {
         s.dependencies = {{JobId{99}, DependencyCondition::kAfterOk}};
       }),
       C::kNotFound, "job new depends on job 99, which does not exist"},
      {JobUpdated{JobId{99}, 0, {}}, C::kNotFound, "no job 99"},
      {JobCancelled{JobId{99}, ""}, C::kNotFound, "no job 99"},
      {JobCancelled{over, ""}, C::kFailedPrecondition, "job over (2) has ended: Succeeded"},
      {JobSuspended{over, true}, C::kFailedPrecondition, "job over (2) has ended: Succeeded"},
      {JobDeleted{JobId{99}}, C::kNotFound, "no job 99"},
      {JobDeleted{id}, C::kFailedPrecondition, "job j (1) has not ended: Binding"},
      {JobStatusChanged{over, {}}, C::kFailedPrecondition, "job over (2) has ended: Succeeded"},
      {status_of([](JobStatus& s) { s.starts = 0; }), C::kFailedPrecondition,
       "job j (1): starts, suspended and cancelled have separate events"},
      {status_of([](JobStatus& s) { s.suspended = true; }), C::kFailedPrecondition,
       "job j (1): starts, suspended and cancelled have separate events"},
      {status_of([](JobStatus& s) { s.cancelled = true; }), C::kFailedPrecondition,
       "job j (1): starts, suspended and cancelled have separate events"},
      {status_of([](JobStatus& s) { s.state = JobState::kFailed; }), C::kFailedPrecondition,
       "job j (1) cannot be Failed with 2 tasks on nodes"},
      {status_of([](JobStatus& s) { s.state = JobState::kCompleting; }), C::kFailedPrecondition,
       "job j (1) cannot be Completing without an outcome"},
  };
  const uint64_t before = Fingerprint(state);
  for (const Row& row : rows) {
    const absl::Status status = Try(row.event);
    CHECK(std::string(status.message()) == row.message);
    CHECK(status.code() == row.code);
    CHECK(Fingerprint(state) == before);
  }
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE("groups that depend on each other in a cycle are rejected", "[model]") {
  World world;
  JobSpec spec = JobOf("j", world.AddQueue("q"),
                       {GroupOfGpus("a", 1, 0), GroupOfGpus("b", 1, 0), GroupOfGpus("c", 1, 0)});
  spec.groups[0].depends_on = {{1, GroupCondition::kRunning}};
  spec.groups[1].depends_on = {{2, GroupCondition::kCompleted}};
  CHECK(world.Try(JobSubmitted{world.state.next_job_id(), spec}).ok());
  spec.name = "k";
  spec.groups[2].depends_on = {{0, GroupCondition::kRunning}};
  CHECK(world.Try(JobSubmitted{world.state.next_job_id(), spec}).message() ==
        "group a depends on itself in a cycle");
}

TEST_CASE("resource kinds beyond the maximum are rejected as a whole", "[model]") {
  World world;
  const QueueId q = world.AddQueue("q");
  JobSpec spec = JobOf("j", q, {GroupOfGpus("w", 1, 0)});
  for (int i = 10; i < 25; ++i) {
    spec.groups[0].shape.extended.push_back({"r" + std::to_string(i), 1});
  }
  const size_t kinds = world.state.interner().kind_count();
  const absl::Status status = world.Try(JobSubmitted{world.state.next_job_id(), spec});
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(world.state.interner().kind_count() == kinds);
}

}  // namespace
}  // namespace berth
