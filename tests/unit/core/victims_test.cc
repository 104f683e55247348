// Nominated places, evicted jobs, and the units that a job consists of.
#include <catch2/catch.hpp>

#include "core/engine/transaction.h"
#include "core/engine/victims/victim_units.h"
#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;
using testing::TestCluster;

// ---- Units

std::string UnitsOf(const Contest& contest, JobId id,
                    EvictionParameters parameters = testing::Unprotected()) {
  UnitMaker maker(contest.state(), parameters, contest.now());
  std::vector<VictimUnit> units;
  maker.AddUnitsOf(contest.job(id), &units);
  std::string text;
  for (const VictimUnit& unit : units) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", unit.rest ? "rest " : "",
                    absl::StrJoin(unit.tasks, " "), " loses ", unit.loss / kWhole);
  }
  return text;
}

TEST_CASE("units: surplus one by one from the end, then the rest") {
  Contest contest({"allocate"});
  contest.AddNodes("n", 1, {.gpus = 8});
  const JobId gang = contest.Run("gang", Gang(2, 1));
  const JobId elastic = contest.Run("elastic", Elastic(2, 4, 1));
  contest.Advance(absl::Seconds(30));
  CHECK(UnitsOf(contest, gang) == "rest 0 1 loses 60");
  CHECK(UnitsOf(contest, elastic) == "3 loses 30, 2 loses 30, rest 0 1 loses 60");
}

TEST_CASE("units: who promises checkpoints and reports none is charged what reporters would lose") {
  Contest contest({"allocate"});
  contest.AddNodes("n", 1, {.gpus = 8});
  JobShape shape = Gang(1, 1);
  const JobId writes_none = contest.Run("writes-none", shape);
  shape.checkpoint_interval = absl::Seconds(10);
  const JobId promises = contest.Run("promises", shape);
  const JobId reports[] = {contest.Run("r1", shape), contest.Run("r2", shape),
                           contest.Run("r3", shape)};
  contest.Advance(absl::Seconds(60));
  CHECK(UnitsOf(contest, promises) == "rest 0 loses 0");  // nobody reports: the interval counts
  for (const JobId id : reports) {
    contest.Must(CheckpointRecorded{.task = {id, 0}, .attempt = 1, .step = 1});
    contest.Advance(absl::Seconds(20));
  }
  CHECK(UnitsOf(contest, reports[0]) == "rest 0 loses 60");
  CHECK(UnitsOf(contest, reports[2]) == "rest 0 loses 20");
  CHECK(UnitsOf(contest, promises) == "rest 0 loses 40");
  CHECK(UnitsOf(contest, writes_none) == "rest 0 loses 120");
  const JobId young = contest.Run("young", shape);
  contest.Advance(absl::Seconds(5));
  CHECK(UnitsOf(contest, young) == "rest 0 loses 5");  // not more than it has run
}

TEST_CASE("units: surplus of the job is no more than every group has") {
  Contest contest({"allocate"});
  contest.AddNodes("n", 1, {.gpus = 8});
  JobShape shape = Gang(1, 1);
  shape.groups = {{.name = "a", .replicas = 3, .min_available = 1, .cpu = 0, .gpus = 1},
                  {.name = "b", .replicas = 3, .min_available = 1, .cpu = 0, .gpus = 1}};
  shape.min_available = 5;
  const JobId id = contest.Run("job", shape);
  REQUIRE(contest.Tasks(id) == "RRRRRR");
  CHECK(UnitsOf(contest, id) == "5 loses 0, rest 0 1 2 3 4 loses 0");
}

TEST_CASE("units: no unit of tasks that are non-preemptible, nominated, being released or lost") {
  Contest contest({"allocate"});
  contest.AddNodes("n", 2, {.gpus = 4});
  CHECK(UnitsOf(contest, contest.Run("firm", Firm(Gang(1, 1)))).empty());
  const JobId lost = contest.Run("lost", Gang(2, 1));
  CHECK_FALSE(UnitsOf(contest, lost).empty());
  contest.Must(NodeSilenced{.id = contest.job(lost).tasks[0].node});
  CHECK(UnitsOf(contest, lost).empty());
  const JobId grows = contest.Run("grows", Elastic(1, 1, 1));
  contest.Must(TasksReleased{.job = grows, .tasks = {0}, .requeue = true});
  CHECK(UnitsOf(contest, grows).empty());
}

TEST_CASE("units: protection by run time and cooldown") {
  EvictionParameters parameters;
  parameters.min_runtime = absl::Minutes(5);
  parameters.cooldown = absl::Minutes(2);
  Contest contest({"allocate"}, parameters);
  contest.AddNodes("n", 1, {.gpus = 4});
  const JobId id = contest.Run("job", Gang(1, 1));
  CHECK(UnitsOf(contest, id, parameters).empty());
  contest.Advance(absl::Minutes(5));
  CHECK(UnitsOf(contest, id, parameters) == "rest 0 loses 300");
  parameters.min_runtime = absl::ZeroDuration();
  contest.Must(TasksReleased{.job = id, .tasks = {0}, .requeue = true});
  JobStatus status = contest.status(id);
  status.state = JobState::kRestarting;
  contest.Must(JobStatusChanged{.job = id, .status = status});
  contest.Leave();
  contest.RunAll(id);
  CHECK(UnitsOf(contest, id, parameters).empty());  // just placed again
  contest.Advance(absl::Minutes(2));
  CHECK(UnitsOf(contest, id, parameters) == "rest 0 loses 120");
}

// ---- Nominated places

struct Waiting : Contest {
  Waiting() : Contest({"allocate", "preempt"}) {
    AddNodes("n", 2, {.gpus = 2});
    Run("low", Gang(2, 2));
    high = Submit("high", Gang(2, 2, "", 5));
    Settle();
    REQUIRE(Nominated() == 2);
  }
  int Nominated() const { return TallyOf(job(high)).Nominated(); }
  JobId high;
};

TEST_CASE("nominated places are given up when the job is suspended or cancelled") {
  Waiting suspended;
  suspended.Must(JobSuspended{.id = suspended.high});
  suspended.Settle();
  CHECK(suspended.Nominated() == 0);
  CHECK(suspended.StateOf(suspended.high) == "Held");
  Waiting cancelled;
  cancelled.Must(JobCancelled{.id = cancelled.high});
  cancelled.Settle();
  CHECK(cancelled.Nominated() == 0);
  CHECK(cancelled.StateOf(cancelled.high) == "Cancelled");
  CHECK(cancelled.state().nominated_jobs().empty());
}

TEST_CASE("all nominated places are given up when one becomes impossible") {
  Waiting cordoned;
  cordoned.Must(NodeSteered{.id = cordoned.node_id("n2"), .cordoned = true});
  cordoned.Settle();
  CHECK(cordoned.Nominated() == 0);
  Waiting broken;
  NodeSpec spec = broken.node("n1").spec;
  spec.devices[0].unhealthy = true;
  broken.Must(NodeRegistered{.id = broken.node_id("n1"),
                             .spec = spec,
                             .epoch = broken.node("n1").status.epoch + 1,
                             .agent_id = "n1"});
  broken.Settle();
  CHECK(broken.Nominated() == 0);
}

// low moves from n1 to n2.
struct Moved : Contest {
  Moved() : Contest({"allocate", "preempt"}) {
    AddNodes("n", 2, {.gpus = 4});
    low = Run("low", Gang(1, 2));
    Must(TasksReleased{.job = low,
                       .tasks = {0},
                       .requeue = true,
                       .reason = ReleaseReason::kPreempted,
                       .beneficiary = low,
                       .moves_to = {{.task = 0, .node = node_id("n2"), .devices = Two()}}});
    JobStatus status = this->status(low);
    status.state = JobState::kRestarting;
    Must(JobStatusChanged{.job = low, .status = status});
  }
  static DeviceSet Two() {
    DeviceSet two;
    two.Add(2);
    two.Add(3);
    return two;
  }
  JobId low;
};

TEST_CASE("a cancelled move leaves the index of nodes unchanged") {
  Contest contest({"allocate", "preempt"});
  contest.AddNodes("n", 2, {.gpus = 4});
  const JobId low = contest.Run("low", Gang(1, 2));
  {
    Transaction trial(contest.state(), contest.now());
    trial.Decide(TasksReleased{
        .job = low,
        .tasks = {0},
        .requeue = true,
        .reason = ReleaseReason::kPreempted,
        .beneficiary = low,
        .moves_to = {{.task = 0, .node = contest.node_id("n2"), .devices = Moved::Two()}}});
  }
  const absl::Status consistent = CheckConsistency(contest.state());
  INFO(consistent);
  CHECK(consistent.ok());
  CHECK(contest.state().free().soon().empty());  // no task is being released
}

TEST_CASE("a moved gang waits for its new place once it has left") {
  Moved contest;
  contest.Report(contest.low, 0, ReportState::kExited, 143, ExitCause::kKilled);
  contest.Cycle();
  CHECK(contest.StateOf(contest.low) != "Restarting");
  CHECK(contest.job(contest.low).tasks[0].node == contest.node_id("n2"));
}

TEST_CASE("a moved gang whose new place becomes impossible waits for any place") {
  Moved contest;
  contest.Must(NodeSteered{.id = contest.node_id("n2"), .cordoned = true});
  contest.Cycle();
  CHECK_FALSE(contest.job(contest.low).tasks[0].moves);
  CHECK(contest.Tasks(contest.low) == "L");
}

TEST_CASE("a moved gang that is cancelled is not placed") {
  Moved contest;
  contest.Must(JobCancelled{.id = contest.low});
  contest.Settle();
  CHECK_FALSE(contest.job(contest.low).tasks[0].moves);
  contest.Leave();
  CHECK(contest.StateOf(contest.low) == "Cancelled");
}

// ---- One cycle

// b holds 4 of 8 GPUs; a, which deserves 6, waits for 6 on one node, and b for `more`.
struct HalfLent : Contest {
  HalfLent(std::vector<std::string> actions, int more) : Contest(std::move(actions)) {
    AddNodes("n", 1, {.gpus = 8});
    AddQueue("a", {.deserved = {{"gpu", 6}}});
    AddQueue("b");
    runs = Run("runs", Gang(1, 4, "b"));
    Advance(absl::Seconds(30));
    owed = Submit("owed", Gang(1, 6, "a"));
    late = Submit("late", Gang(1, more, "b"));
  }
  JobId runs, owed, late;
};

TEST_CASE("a cycle does not stop a task that it has bound") {
  HalfLent contest({"allocate", "reclaim"}, 2);
  CHECK(contest.Evictions() == "nominate owed: 0@n1\nrelease runs: 0 for owed\n");
  CHECK(contest.Tasks(contest.late) == "B");
}

TEST_CASE("a task just bound may be stopped a moment later") {
  HalfLent contest({"allocate", "reclaim"}, 4);  // with late bound, evicting runs does not suffice
  CHECK(contest.Evictions().empty());
  REQUIRE(contest.Tasks(contest.late) == "B");
  const Plan plan = contest.Cycle();
  CHECK(plan.wake_at == contest.now() + absl::Milliseconds(1));
  contest.PassTo(plan.wake_at);
  CHECK(contest.Evictions() ==
        "nominate owed: 0@n1\nrelease runs: 0 for owed\nrelease late: 0 for owed\n");
}

TEST_CASE("no job overtakes a gang for which others are stopped in the same cycle") {
  HalfLent contest({"allocate", "backfill", "reclaim"}, 4);
  CHECK(contest.Evictions() == "nominate owed: 0@n1\nrelease runs: 0 for owed\n");
  CHECK(contest.Tasks(contest.late) == ".");
  contest.Leave();
  CHECK(contest.Tasks(contest.owed) == "B");
}

// The work of one cycle in which `jobs` jobs of one GPU each reclaim one of 64 GPUs.
uint64_t WorkOfReclaims(int jobs) {
  Contest contest({"allocate", "reclaim"});
  contest.AddNodes("n", 8, {.gpus = 8});
  contest.AddQueue("a", {.deserved = {{"gpu", 32}}});
  contest.AddQueue("b");
  std::vector<JobId> ids;
  for (int i = 0; i < 64; ++i) ids.push_back(contest.Submit(absl::StrCat("b", i), Gang(1, 1, "b")));
  contest.Settle();
  for (JobId id : ids) contest.RunAll(id);
  for (int i = 0; i < jobs; ++i) contest.Submit(absl::StrCat("a", i), Gang(1, 1, "a"));
  const Plan plan = contest.Cycle();
  CHECK(contest.state().releasing().size() == static_cast<size_t>(jobs));
  for (const StageCounters& stage : plan.stages) {
    if (stage.name == "reclaim") return stage.work;
  }
  return 0;
}

TEST_CASE("the work of each reclaim does not depend on the number of reclaims before it") {
  const uint64_t few = WorkOfReclaims(8), many = WorkOfReclaims(32);
  INFO(few << " and " << many);
  CHECK(many < 4 * few + few / 2);
}

TEST_CASE("enough room, but at a queue limit: a gang is nominated until its queues may hold it") {
  Contest contest({"allocate", "reclaim"});
  contest.AddNode("n1", {.gpus = 8, .model = "A100"});
  contest.AddNode("n2", {.gpus = 8, .model = "H100"});
  contest.AddQueue("p", {.limit = {{"gpu", 8}}});
  contest.AddQueue("a", {.parent = "p"});
  contest.AddQueue("b", {.parent = "p", .deserved = {{"gpu", 4}}});
  const auto on = [](const char* model, const char* queue) {
    JobShape shape = Gang(1, 4, queue);
    shape.groups[0].models = {model};
    return shape;
  };
  contest.Run("first", on("A100", "a"));
  contest.Run("second", on("A100", "a"));
  const JobId owed = contest.Submit("owed", on("H100", "b"));
  CHECK(contest.Evictions() == "nominate owed: 0@n2\nrelease second: 0 for owed\n");
  CHECK(contest.Tasks(owed) == ".");
  contest.Leave();
  CHECK(contest.Tasks(owed) == "B");
}

TEST_CASE("a gang with members that finished while being stopped restarts as a whole") {
  Contest contest({"allocate", "preempt"});
  contest.AddNodes("n", 2, {.gpus = 1});
  const JobId low = contest.Run("low", Gang(2, 1));
  contest.Submit("high", Gang(1, 1, "", 5));
  contest.Settle();
  REQUIRE(contest.Tasks(low) == "LL");
  contest.Report(low, 0, ReportState::kExited, 0);
  contest.Report(low, 1, ReportState::kExited, 143, ExitCause::kKilled);
  contest.Cycle();
  CHECK(contest.StateOf(low) == "Pending");
  CHECK(contest.Tasks(low) == "..");
}

}  // namespace
}  // namespace berth
