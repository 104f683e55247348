// Tables for preempt: which jobs are evicted for which inside a queue.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;

const std::vector<std::string> kActions = {"allocate", "preempt"};

TEST_CASE("preempt: a job of higher priority evicts a job of lower priority") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 8});
  const JobId low = contest.Run("low", Gang(2, 8));
  const JobId high = contest.Submit("high", Gang(1, 8, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1\nrelease low: 0 1 for high\n");
  CHECK(contest.StateOf(low) == "Restarting");
  CHECK(contest.status(low).retries == 0);
  CHECK(contest.status(low).message == "evicted for job high: its priority 0 is below 5");
  CHECK(contest.job(high).tasks[0].state == TaskState::kNominated);
}

TEST_CASE("preempt: jobs of equal or higher priority and non-preemptible jobs are not evicted") {
  Contest contest(kActions);
  contest.AddNodes("n", 3, {.gpus = 8});
  contest.Run("equal", Gang(1, 8, "", 5));
  contest.Run("higher", Gang(1, 8, "", 6));
  contest.Run("firm", Firm(Gang(1, 8, "", 1)));
  contest.Submit("high", Gang(1, 8, "", 5));
  CHECK(contest.Evictions().empty());
}

TEST_CASE("preempt: a job of higher priority takes the places that a restarting gang holds") {
  const int priority = GENERATE(0, 5);
  const bool firm = GENERATE(false, true);
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 8});
  const JobId low = contest.Run("low", firm ? Firm(Gang(2, 8)) : Gang(2, 8));
  contest.Must(NodeSteered{.id = contest.node_id("n2"), .cordoned = true, .draining = true});
  contest.Settle();
  contest.Leave();
  REQUIRE(KeepsPlaces(contest.job(low), contest.now()));
  REQUIRE(contest.job(low).tasks[0].state == TaskState::kNominated);
  const JobId high = contest.Submit("high", Gang(1, 8, "", priority));
  contest.Settle();
  if (priority == 0 || firm) {
    CHECK(contest.StateOf(high) == "Pending");
    CHECK(contest.job(low).tasks[0].state == TaskState::kNominated);
    return;
  }
  CHECK(contest.Where(high) == "n1");
  CHECK(contest.Tasks(low) == "..");
  CHECK_FALSE(KeepsPlaces(contest.job(low), contest.now()));
  CHECK(contest.status(low).message ==
        "gave up the places that it kept, for job high: its priority 0 is below 5");
}

TEST_CASE("preempt: only as many jobs as needed give up the places that they hold") {
  Contest contest(kActions);
  contest.AddNodes("n", 4, {.gpus = 8});
  const JobId older = contest.Run("older", Gang(2, 8));
  const JobId younger = contest.Run("younger", Gang(2, 8));
  for (const char* node : {"n2", "n4"}) {
    contest.Must(NodeSteered{.id = contest.node_id(node), .cordoned = true, .draining = true});
  }
  contest.Settle();
  contest.Leave();
  REQUIRE(KeepsPlaces(contest.job(older), contest.now()));
  REQUIRE(KeepsPlaces(contest.job(younger), contest.now()));
  const JobId high = contest.Submit("high", Gang(1, 8, "", 5));
  contest.Settle();
  CHECK(contest.Where(high) == "n3");
  CHECK(KeepsPlaces(contest.job(older), contest.now()));
  CHECK_FALSE(KeepsPlaces(contest.job(younger), contest.now()));
}

TEST_CASE("preempt: an eviction waits for a checkpoint that is about to be made") {
  EvictionParameters eviction = testing::Unprotected();
  const Duration patience = GENERATE(absl::Minutes(2), absl::ZeroDuration());
  eviction.checkpoint_wait = patience;
  Contest contest(kActions, eviction);
  contest.AddNodes("n", 1, {.gpus = 8});
  JobShape saves = Gang(1, 8);
  saves.checkpoint_interval = absl::Minutes(10);
  const JobId low = contest.Run("low", saves);
  contest.Must(CheckpointRecorded{.task = {low, 0}, .attempt = 1, .step = 1});
  contest.Advance(absl::Minutes(5));
  SECTION("soon") {
    contest.Advance(absl::Minutes(4) + absl::Seconds(30));
    const JobId high = contest.Submit("high", Gang(1, 8, "", 5));
    contest.Settle();
    if (patience == absl::ZeroDuration()) {
      CHECK(contest.Tasks(low) == "L");
      return;
    }
    CHECK(contest.Tasks(low) == "R");
    const std::vector<WaitReason> why = contest.Why(high);
    REQUIRE_FALSE(why.empty());
    contest.Advance(absl::Seconds(20));
    contest.Must(CheckpointRecorded{.task = {low, 0}, .attempt = 1, .step = 2});
    CHECK(contest.Tasks(low) == "R");
    contest.Advance(absl::Seconds(70));  // a tenth of the interval later
    CHECK(contest.Tasks(low) == "L");
  }
  SECTION("soon, and it does not come") {
    contest.Advance(absl::Minutes(4) + absl::Seconds(30));
    contest.Submit("high", Gang(1, 8, "", 5));
    contest.Settle();
    contest.Advance(absl::Seconds(90));
    CHECK(contest.Tasks(low) == "L");
  }
  SECTION("not for one that is far away") {
    contest.Submit("high", Gang(1, 8, "", 5));
    contest.Settle();
    CHECK(contest.Tasks(low) == "L");
  }
}

TEST_CASE("preempt: jobs of other queues are not evicted") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 8});
  contest.AddQueue("a");
  contest.AddQueue("b");
  contest.Run("low", Gang(1, 8, "a"));
  contest.Submit("high", Gang(1, 8, "b", 5));
  CHECK(contest.Evictions().empty());
}

TEST_CASE("preempt: lowest priority first, then least loss, then the younger") {
  Contest contest(kActions);
  contest.AddNodes("n", 4, {.gpus = 2});
  contest.Run("old", Gang(1, 2, "", 1));
  contest.Advance(absl::Seconds(100));
  contest.Run("young", Gang(1, 2, "", 1));
  contest.Run("younger", Gang(1, 2, "", 1));
  contest.Run("mean", Gang(1, 2, "", 2));
  contest.Advance(absl::Seconds(10));
  contest.Submit("h1", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate h1: 0@n3\nrelease younger: 0 for h1\n");
  contest.Submit("h2", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate h2: 0@n2\nrelease young: 0 for h2\n");
  contest.Submit("h3", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate h3: 0@n1\nrelease old: 0 for h3\n");
  contest.Submit("h4", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate h4: 0@n4\nrelease mean: 0 for h4\n");
}

TEST_CASE("preempt: a recent checkpoint makes a long run cheap to evict") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 2});
  JobShape checkpoints = Gang(1, 2);
  checkpoints.checkpoint_interval = absl::Seconds(60);
  contest.Run("saves", checkpoints);
  contest.Advance(absl::Seconds(590));
  contest.Run("never", Gang(1, 2));
  contest.Advance(absl::Seconds(15));  // 605 s: 5 s since the last checkpoint
  contest.Submit("high", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1\nrelease saves: 0 for high\n");
}

TEST_CASE("preempt: surplus tasks before whole gangs, highest index first") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 4});
  const JobId gang = contest.Run("gang", Gang(1, 4));
  const JobId elastic = contest.Run("elastic", Elastic(1, 4, 1));
  contest.Submit("high", Gang(2, 1, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n2 1@n2\nrelease elastic: 2 3 for high\n");
  CHECK(contest.StateOf(elastic) == "Running");
  CHECK(contest.status(elastic).message ==
        "2 surplus tasks evicted for job high: its priority 0 is below 5");
  CHECK(contest.StateOf(gang) == "Running");
  CHECK(contest.Tasks(elastic) == "RRLL");
}

TEST_CASE("preempt: an elastic job is evicted whole rather than shrunk below its minimum") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 4});
  const JobId elastic = contest.Run("elastic", Elastic(2, 4, 1));
  contest.Submit("high", Gang(3, 1, "", 5));
  contest.Settle();
  CHECK(contest.StateOf(elastic) == "Restarting");
  CHECK(contest.Tasks(elastic) == "LLLL");
}

TEST_CASE("preempt: free resources and resources being released count too") {
  Contest contest(kActions);
  contest.AddNodes("n", 3, {.gpus = 2});
  contest.Run("a", Gang(1, 2));
  const JobId b = contest.Run("b", Gang(1, 2));
  contest.Must(JobCancelled{.id = b});
  contest.Settle();
  REQUIRE(contest.Tasks(b) == "L");
  const JobId high = contest.Submit("high", Gang(3, 2, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1 1@n2 2@n3\nrelease a: 0 for high\n");
  const JobId next = contest.Submit("next", Gang(1, 2, "", 9));
  CHECK(contest.Evictions().empty());  // nominated jobs are never victims
  CHECK(contest.job(high).tasks[0].state == TaskState::kNominated);
  CHECK(contest.StateOf(next) == "Pending");
}

TEST_CASE("preempt: no eviction if resources being released suffice") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 2});
  contest.Run("a", Gang(1, 2));
  const JobId b = contest.Run("b", Gang(1, 2));
  contest.Must(JobCancelled{.id = b});
  contest.Submit("high", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n2\n");
}

TEST_CASE("preempt: no eviction for a gang that would not fit anyway") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 2});
  contest.Run("firm", Firm(Gang(1, 2)));
  contest.Run("low", Gang(1, 2));
  contest.Submit("two", Gang(2, 2, "", 5));
  contest.Submit("never", Gang(3, 2, "", 5));
  CHECK(contest.Evictions().empty());
}

TEST_CASE("preempt: at the queue's limit, victims are jobs of that queue") {
  Contest contest(kActions);
  contest.AddNodes("n", 4, {.gpus = 2});
  contest.AddQueue("a", {.limit = {{"gpu", 4}}});
  contest.Run("low", Gang(1, 2, "a"));
  contest.Run("other", Gang(1, 2, "a", 1));
  contest.Submit("high", Gang(1, 2, "a", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1\nrelease low: 0 for high\n");
}

TEST_CASE("preempt: a victim that fits elsewhere is moved") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 4});
  const JobId low = contest.Run("low", Gang(1, 1));
  const JobId side = contest.Run("side", Gang(1, 2));
  REQUIRE(contest.Where(low) == contest.Where(side));
  contest.Run("wide", Firm(Gang(1, 2)));
  contest.Submit("high", Gang(1, 4, "", 5));
  CHECK(contest.Evictions() ==
        "nominate high: 0@n1\nrelease low: 0 for high to 0@n2\nrelease side: 0 for high\n");
  CHECK(contest.status(low).message == "moved for job high: its priority 0 is below 5");
  contest.Report(low, 0, ReportState::kExited, 143, ExitCause::kKilled);
  contest.Settle();
  CHECK(contest.StateOf(low) != "Restarting");
}

// b is owed 6 of 16, but finds no three nodes with 2 free. With 12, a would hold more than its 10,
// and b would reclaim all of it.
TEST_CASE("preempt: no job is stopped so that the queue borrows resources that another waits for") {
  Contest contest(kActions);
  contest.AddNodes("n", 4, {.gpus = 4});
  contest.AddQueue("a", {.deserved = {{"gpu", 10}}});
  contest.AddQueue("b", {.deserved = {{"gpu", 6}}});
  contest.Run("low", Gang(3, 3, "a"));
  const JobId owed = contest.Submit("owed", Gang(3, 2, "b"));
  contest.Submit("wide", Gang(3, 4, "a", 5));
  CHECK(contest.Evictions().empty());
  SECTION("within its share the queue may preempt") {
    contest.Submit("high", Gang(2, 4, "a", 5));
    CHECK(contest.Evictions() == "nominate high: 0@n1 1@n2\nrelease low: 0 1 2 for high\n");
  }
  SECTION("once no job waits for the resources it may, and the job is re-evaluated for that") {
    contest.Must(JobCancelled{.id = owed});
    contest.Settle();
    contest.Advance(absl::Seconds(10));
    CHECK(contest.state().releasing().size() == 3);
  }
}

TEST_CASE("preempt: min_runtime protects, and the pending job is re-evaluated when it ends") {
  EvictionParameters parameters = testing::Unprotected();
  parameters.min_runtime = absl::Minutes(10);
  Contest contest(kActions, parameters);
  contest.AddNodes("n", 1, {.gpus = 2});
  contest.Run("low", Gang(1, 2));
  contest.Advance(absl::Minutes(4));
  contest.Submit("high", Gang(1, 2, "", 5));
  CHECK(contest.Evictions().empty());
  CHECK(contest.Cycle().wake_at == contest.now() + absl::Minutes(6));
  contest.Advance(absl::Minutes(6));
  CHECK(contest.state().releasing().size() == 1);
}

TEST_CASE("preempt: a job of higher priority in a parked class is evaluated at once") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 2});
  contest.Run("low", Gang(1, 2, "", 1));
  contest.Submit("lower", Gang(1, 2, "", 0));
  CHECK(contest.Evictions().empty());
  contest.Submit("high", Gang(1, 2, "", 5));
  CHECK(contest.Evictions() == "nominate high: 0@n1\nrelease low: 0 for high\n");
}

TEST_CASE("preempt: a parked class costs nothing") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 2});
  contest.Run("low", Gang(1, 2, "", 1));
  contest.Submit("lower", Gang(1, 2, "", 0));
  contest.Settle();
  CHECK(contest.Cycle().counters.work == 0);
}

TEST_CASE("preempt: all jobs of a class get places in one cycle, one plan each") {
  Contest contest(kActions);
  contest.AddNodes("n", 4, {.gpus = 2});
  for (const char* name : {"a", "b", "c", "d"}) contest.Run(name, Gang(1, 2));
  for (const char* name : {"w", "x", "y", "z"}) contest.Submit(name, Gang(1, 2, "", 5));
  int released = 0;
  for (const EventBody& decision : contest.Cycle().decisions) {
    released += std::holds_alternative<TasksReleased>(decision) ? 1 : 0;
  }
  CHECK(released == 4);
  contest.Settle();
  CHECK(contest.state().releasing().size() == 4);
}

TEST_CASE("preempt: a victim that finished by itself in the meantime stays finished") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 2});
  const JobId low = contest.Run("low", Gang(1, 2));
  contest.Submit("high", Gang(1, 2, "", 5));
  contest.Settle();
  REQUIRE(contest.StateOf(low) == "Restarting");
  contest.Exit(low, 0, 0);
  CHECK(contest.StateOf(low) == "Succeeded");
}

TEST_CASE("preempt: growth preempts task by task, too") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 4});
  const JobId high = contest.Run("high", Gang(1, 1, "", 5));
  contest.Run("low", Elastic(1, 3, 1));
  const JobId grows = contest.Submit("grows", Elastic(1, 2, 1, "", 5));
  contest.Settle();
  CHECK(contest.StateOf(high) == "Running");
  CHECK(contest.state().releasing().size() == 1);
  CHECK(contest.job(grows).tasks[0].state == TaskState::kNominated);
}

}  // namespace
}  // namespace berth
