// Jobs that are paused: what agents are told, and which of their reports count.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "server/commands/job_change.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

absl::Status ChangeHold(World& world, JobId id, bool suspended, bool freeze = false) {
  absl::Status result;
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                const Job& job = turn.state().jobs().At(id);
                MaybeEvent event = freeze ? FreezeOf(turn.state(), job, world.store_format)
                                          : SuspensionOf(job, suspended);
                result = event.status();
                if (event.ok() && event->has_value()) result = turn.Emit(**std::move(event));
              })
              .ok());
  world.Run();
  return result;
}

struct PausedWorld {
  PausedWorld() {
    agent.inventory.set_freezes(true);
    agent.Connect();
    id = world.Submit("one");
    agent.Work();
    REQUIRE(world.job(id).status.state == JobState::kRunning);
  }
  // Requests that the agent got.
  std::vector<int64_t> Requests() const {
    std::vector<int64_t> requests;
    for (const Message& message : agent.link->Of(Message::kFreezeTask)) {
      requests.push_back(message.freeze_task().request());
    }
    return requests;
  }
  void ReportPaused(int64_t request) {
    v1::TaskReport report = agent.ReportFor(id, 0, 1, v1::TaskReport::PAUSED);
    report.set_freeze_request(request);
    agent.journal[{id.value, 0, 1}] = report;
    agent.Report(report);
    world.Run();
  }

  World world;
  Agent agent{&world, "n1"};
  JobId id;
};

TEST_CASE("pause: the agent is told to freeze, and only a report of this pause counts") {
  PausedWorld run;
  REQUIRE(ChangeHold(run.world, run.id, true, /*freeze=*/true).ok());
  const std::vector<int64_t> requests = run.Requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0] == absl::ToUnixNanos(run.world.job(run.id).status.pause.since));
  CHECK(run.agent.link->Of(Message::kKill).empty());
  run.ReportPaused(requests[0] - 1);
  CHECK(run.world.task(run.id).pause == PauseState::kPausing);
  run.ReportPaused(requests[0]);
  CHECK(run.world.task(run.id).pause == PauseState::kPaused);
  CHECK(run.world.node("n1").allocated[kCpu] == 0);
  CHECK(ChangeHold(run.world, run.id, true, /*freeze=*/true).ok());  // it is
  REQUIRE(ChangeHold(run.world, run.id, false).ok());
  CHECK(run.Requests() == std::vector<int64_t>{requests[0], 0});
  CHECK(run.world.task(run.id).pause == PauseState::kRuns);
}

TEST_CASE("pause: what a registration finds out of step is sent again") {
  PausedWorld run;
  run.agent.Disconnect();
  REQUIRE(ChangeHold(run.world, run.id, true, /*freeze=*/true).ok());
  run.agent.Connect();
  REQUIRE(run.Requests().size() == 1);
  const int64_t request = run.Requests()[0];
  SECTION("it was frozen, and the report was lost") {
    v1::TaskReport report = run.agent.ReportFor(run.id, 0, 1, v1::TaskReport::PAUSED);
    report.set_freeze_request(request);
    run.agent.journal[{run.id.value, 0, 1}] = report;
    run.agent.Disconnect();
    run.agent.Connect();
    CHECK(run.world.task(run.id).pause == PauseState::kPaused);
  }
  SECTION("the server restarts") {
    run.ReportPaused(request);
    run.world.Restart();
    run.agent.Connect();
    CHECK(run.world.task(run.id).pause == PauseState::kPaused);
    CHECK(run.Requests() == std::vector<int64_t>{request});
  }
  SECTION("it is resumed meanwhile") {
    run.ReportPaused(request);
    run.agent.Disconnect();
    run.world.Advance(absl::Seconds(1));
    REQUIRE(ChangeHold(run.world, run.id, false).ok());
    run.agent.Connect();
    CHECK(run.Requests() == std::vector<int64_t>{0});
    CHECK(run.world.task(run.id).pause == PauseState::kRuns);
  }
}

TEST_CASE("pause: what cannot be frozen is refused by name") {
  PausedWorld run;
  SECTION("its node cannot") {
    run.agent.inventory.set_freezes(false);
    run.agent.Disconnect();
    run.agent.Connect();
    const absl::Status status = ChangeHold(run.world, run.id, true, /*freeze=*/true);
    CHECK(absl::StrContains(status.message(), "node n1 cannot freeze the tasks of job \"one\""));
  }
  SECTION("it does not run") {
    const JobId waits = run.world.Submit("large", {.cpu_millis = 1'000'000});
    const absl::Status status = ChangeHold(run.world, waits, true, /*freeze=*/true);
    CHECK(absl::StrContains(status.message(), "only a running job can be frozen"));
  }
  SECTION("it is being stopped") {
    REQUIRE(ChangeHold(run.world, run.id, true).ok());
    CHECK_FALSE(ChangeHold(run.world, run.id, true, /*freeze=*/true).ok());
  }
  SECTION("the store cannot hold it") {
    run.world.store_format = 9;
    const absl::Status status = ChangeHold(run.world, run.id, true, /*freeze=*/true);
    CHECK(absl::StrContains(status.message(), "berth cluster finalize"));
  }
  CHECK(run.Requests().empty());
}

TEST_CASE("pause: a user cannot resume what is paused for another job") {
  PausedWorld run;
  const JobId urgent = run.world.Submit("urgent", {.cpu_millis = 1'000'000});
  const Job& job = run.world.job(run.id);
  REQUIRE(
      run.world.loop
          ->Post([&](Turn& turn) {
            REQUIRE(
                turn.Emit(TasksPaused{.job = run.id, .tasks = {0}, .beneficiary = urgent}).ok());
            const absl::Status refused = ResumeOf(turn.state(), job).status();
            CHECK(absl::IsFailedPrecondition(refused));
            CHECK(refused.message() ==
                  "job \"one\" is paused for job \"urgent\", and not by its user: it goes on "
                  "once its CPU is free");
            // Its user's own hold may be given up again.
            REQUIRE(turn.Emit(JobSuspended{.id = run.id, .suspended = true, .freeze = true}).ok());
            CHECK(ResumeOf(turn.state(), job)->has_value());
          })
          .ok());
  run.world.Run();
}

TEST_CASE("pause: a frozen task is killed like any other") {
  PausedWorld run;
  REQUIRE(ChangeHold(run.world, run.id, true, /*freeze=*/true).ok());
  run.ReportPaused(run.Requests()[0]);
  run.world.Cancel(run.id);
  run.agent.Work();
  CHECK(run.agent.link->Of(Message::kKill).size() == 1);
  CHECK(run.world.job(run.id).status.state == JobState::kCancelled);
}

// Its job has a GPU, and lends it.
struct LendingWorld {
  explicit LendingWorld(bool can, bool lends = true) {
    agent.inventory.set_freezes(true);
    agent.inventory.set_checkpoints_devices(can);
    v1::Device& gpu = *agent.inventory.add_devices();
    gpu.set_kind("gpu");
    gpu.set_uuid("g0");
    agent.Connect();
    id = world.Submit("one", {.gpus = 1, .lends_devices = lends});
    agent.Work();
    REQUIRE(world.job(id).status.state == JobState::kRunning);
    REQUIRE(ChangeHold(world, id, true, /*freeze=*/true).ok());
    order = agent.link->Of(Message::kFreezeTask).at(0).freeze_task();
  }
  void ReportPaused(bool released, const std::string& why = "") {
    v1::TaskReport report = agent.ReportFor(id, 0, 1, v1::TaskReport::PAUSED);
    report.set_freeze_request(order.request());
    report.set_devices_released(released);
    report.set_message(why);
    agent.journal[{id.value, 0, 1}] = report;
    agent.Report(report);
    world.Run();
  }

  World world;
  Agent agent{&world, "n1"};
  JobId id;
  v1::FreezeTask order;
};

TEST_CASE("pause: a job that lends its devices, and a node that can save them") {
  LendingWorld run(true);
  CHECK(run.order.checkpoint_devices());
  run.ReportPaused(true);
  CHECK(run.world.task(run.id).devices_lent);
  CHECK(run.world.node("n1").devices_used.InUse().Empty());
  SECTION("the report comes again") {
    run.agent.Disconnect();
    run.agent.Connect();
    CHECK(run.world.task(run.id).devices_lent);
  }
  SECTION("the server restarts") {
    run.world.Restart();
    run.agent.Connect();
    CHECK(run.world.task(run.id).devices_lent);
    CHECK(run.world.node("n1").lent.Count() == 1);
  }
  REQUIRE(ChangeHold(run.world, run.id, false).ok());
  CHECK_FALSE(run.world.task(run.id).devices_lent);
  const Message last = run.agent.link->Of(Message::kFreezeTask).back();
  CHECK(last.freeze_task().request() == 0);
  CHECK_FALSE(last.freeze_task().checkpoint_devices());
}

TEST_CASE("pause: only nodes that can are asked to save devices, for jobs that lend them") {
  SECTION("the node cannot") {
    LendingWorld run(false);
    CHECK_FALSE(run.order.checkpoint_devices());
    run.ReportPaused(false);
    CHECK(run.world.task(run.id).pause == PauseState::kPaused);
    CHECK(run.world.node("n1").devices_used.InUse().Count() == 1);
  }
  SECTION("the job keeps them: a report that it lends them is refused") {
    LendingWorld run(true, false);
    CHECK_FALSE(run.order.checkpoint_devices());
    run.ReportPaused(true);
    CHECK(run.world.task(run.id).pause == PauseState::kPausing);
    run.ReportPaused(false);
    CHECK(run.world.task(run.id).pause == PauseState::kPaused);
  }
  SECTION("the node could not this time") {
    LendingWorld run(true);
    run.ReportPaused(false, "UVM");
    CHECK_FALSE(run.world.task(run.id).devices_lent);
    CHECK(run.world.node("n1").devices_used.InUse().Count() == 1);
  }
}

}  // namespace
}  // namespace berth
