// expire_gangs: jobs that run below their minimum for too long.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;

// A gang of two that restarts single tasks, one a node; its second node accepts no new tasks.
struct Crippled : Contest {
  Crippled() : Contest({"allocate", "expire_gangs"}) {
    AddNodes("n", 2, {.gpus = 1});
    JobShape shape = Firm(Gang(2, 1));
    shape.groups[0].membership = GangMembership::kIndependent;
    shape.policies = {{.event = PolicyEvent::kTaskFailed, .action = PolicyAction::kRestartTask}};
    shape.max_retries = 5;
    job_id = Run("gang", shape);
    Must(NodeSteered{.id = node_id("n2"), .cordoned = true});
    Exit(job_id, 1, 1);
    Advance(absl::Seconds(2));  // the retry's back-off
    REQUIRE(Tasks(job_id) == "R.");
  }
  JobId job_id;
};

TEST_CASE("expire: a gang below its minimum for longer than its grace restarts") {
  Crippled contest;
  const Time short_since = contest.state().short_jobs().begin()->first;
  CHECK(contest.Cycle().wake_at == short_since + absl::Minutes(5));
  contest.Advance(absl::Minutes(4));
  CHECK(contest.Tasks(contest.job_id) == "R.");
  const int32_t retries = contest.status(contest.job_id).retries;
  contest.Advance(absl::Minutes(1));
  CHECK(contest.Tasks(contest.job_id) == "L.");
  CHECK(contest.StateOf(contest.job_id) == "Restarting");
  CHECK(contest.status(contest.job_id).retries == retries);
  CHECK(contest.status(contest.job_id).message == "below its minimum for longer than 5m");
  contest.GoneAll(contest.job_id);
  CHECK(contest.StateOf(contest.job_id) == "Pending");
}

TEST_CASE("expire: nothing happens if there is room again in time") {
  Crippled contest;
  contest.Advance(absl::Minutes(4));
  contest.Must(NodeSteered{.id = contest.node_id("n2")});
  contest.RunAll(contest.job_id);
  CHECK(contest.Tasks(contest.job_id) == "RR");
  CHECK(contest.state().short_jobs().empty());
  contest.Advance(absl::Minutes(10));
  CHECK(contest.StateOf(contest.job_id) == "Running");
}

TEST_CASE("expire: a gang below its full size, but not below its minimum, keeps running") {
  Contest contest({"allocate", "expire_gangs"});
  contest.AddNodes("n", 2, {.gpus = 1});
  const JobId id = contest.Submit("elastic", Elastic(1, 3, 1));
  contest.RunAll(id);
  contest.Advance(absl::Hours(1));
  CHECK(contest.StateOf(id) == "Running");
  CHECK(contest.state().short_jobs().empty());
}

}  // namespace
}  // namespace berth
