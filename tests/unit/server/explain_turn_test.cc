// Queries in a turn of the loop: they see what the turn has done so far, and leave no trace.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "core/engine/explain/dry_run.h"
#include "core/engine/explain/explain.h"
#include "core/model/state_editor.h"
#include "server/commands/submission.h"
#include "tests/unit/server/checked_submission.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth {
namespace {

using testing::Checked;
using testing::DefaultLimits;
using testing::SmallJob;
using testing::World;

v1::SubmitJobsRequest RequestOf(const std::string& name, int32_t tasks = 1) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob(name, "main");
  request.mutable_jobs(0)->mutable_spec()->mutable_groups(0)->set_replicas(tasks);
  return request;
}

// Returns the planned placement of the job.
void Ask(World& world, const v1::SubmitJobsRequest& request, std::optional<DryRunResult>* plan) {
  REQUIRE(world.loop
              ->Post([checked = Checked(world, request), plan](Turn& turn) {
                Submission submission(checked, DefaultLimits(), {});
                REQUIRE(submission.Check(turn.state()).ok());
                const JobSpec spec = submission.TakeOnly(turn.state());
                auto result = DryRun(turn.Trial(), turn.policies(), spec, turn.now());
                REQUIRE(result.ok());
                turn.OnDurable([plan, result = *std::move(result)] { *plan = result; });
              })
              .ok());
}

uint64_t RevisionOf(const World& world) {
  return world.loop->Read([](const ClusterState&, uint64_t revision) { return revision; });
}

TEST_CASE("loop: a turn with only queries has no cycle and leaves no batch") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  const JobId waiting = world.Submit("waiting", {.tasks = 20});  // 1 core each; the node has 8
  const uint64_t state = Fingerprint(world.state());
  const uint64_t revision = RevisionOf(world);
  const size_t batches = world.committer.batches;
  const uint64_t cycles = world.loop->counters().cycles.load();
  REQUIRE(world.loop->RunTurn() == TurnResult::kIdle);

  const v1::SubmitJobsRequest small = RequestOf("small", 3), large = RequestOf("large", 9);
  std::optional<DryRunResult> fits, waits;
  Ask(world, small, &fits);
  Ask(world, large, &waits);
  world.Run();
  REQUIRE(fits.has_value());
  CHECK(fits->placements.size() == 3);
  REQUIRE(waits.has_value());
  CHECK_FALSE(waits->StartsNow());
  CHECK_FALSE(waits->blockers.empty());

  CHECK(Fingerprint(world.state()) == state);
  CHECK(CheckConsistency(world.state()).ok());
  CHECK(RevisionOf(world) == revision);
  CHECK(world.committer.batches == batches);
  CHECK(world.loop->counters().cycles.load() == cycles);
  CHECK(world.job(waiting).status.state == JobState::kPending);
  CHECK_FALSE(WhyWaiting(world.state(), world.job(waiting), world.clock.Now()).empty());
}

TEST_CASE("loop: a query between two submits of a turn has no effect") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  RequestTable requests;
  const v1::SubmitJobsRequest first = RequestOf("first", 5), query = RequestOf("asked", 4),
                              last = RequestOf("last", 2);
  v1::SubmitJobsResponse answers[2];
  const auto submit = [&](const v1::SubmitJobsRequest& request, v1::SubmitJobsResponse* answer) {
    REQUIRE(world.loop
                ->Post([&requests, checked = Checked(world, request), answer](Turn& turn) {
                  Submission submission(checked, DefaultLimits(), {});
                  REQUIRE(submission.Commit(turn, requests, JobId{1}, *answer).ok());
                })
                .ok());
  };
  std::optional<DryRunResult> plan;
  submit(first, &answers[0]);
  Ask(world, query, &plan);
  submit(last, &answers[1]);
  world.Run();
  REQUIRE(plan.has_value());
  CHECK_FALSE(plan->StartsNow());  // 5 of 8 cores go to the first job, which is older
  CHECK(answers[1].jobs(0).uid() == answers[0].jobs(0).uid() + 1);
  CHECK(world.state().FindJob("asked") == nullptr);
  CHECK(CheckConsistency(world.state()).ok());

  const uint64_t live = Fingerprint(world.state());
  world.Restart();
  CHECK(Fingerprint(world.state()) == live);
}

TEST_CASE("loop: the answer to a query waits until the state that it read is durable") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  world.committer.hold = true;
  const JobId waiting = world.Submit("waiting", {.tasks = 20});
  bool ran = false;
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                const Explanation explanation =
                    Explain(turn.Trial(), turn.policies(), waiting, turn.now());
                CHECK_FALSE(explanation.reasons.empty());
                CHECK(explanation.position == 1);
                turn.OnDurable([&ran] { ran = true; });
              })
              .ok());
  world.Run();
  CHECK_FALSE(ran);
  world.committer.Release();
  CHECK(ran);
}

}  // namespace
}  // namespace berth
