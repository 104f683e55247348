// A store that was restored, or another one, under agents that ran tasks for the one before.
#include <catch2/catch.hpp>

#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;
using v1::TaskReport;

v1::Refused RefusalOf(const Agent& agent) {
  const auto refusals = agent.link->Of(Message::kRefused);
  return refusals.empty() ? v1::Refused() : refusals[0].refused();
}

// One job runs on n1 in incarnation 5; then the store goes on as incarnation 9.
struct Restored {
  Restored() {
    world.identity = {.cluster_id = "c", .incarnation = 5};
    world.Restart();
    agent.incarnation = 5;
    agent.Connect();
    job = world.Submit("train");
    agent.Work();
    REQUIRE(world.task(job).state == TaskState::kRunning);
    world.identity.incarnation = 9;
    world.Restart();
  }
  World world;
  Agent agent{&world, "n1"};
  JobId job;
};

TEST_CASE("incarnation: Welcome and every message about a task carry it") {
  World world;
  world.identity = {.cluster_id = "c", .incarnation = 9};
  world.Restart();
  Agent agent(&world, "n1");
  agent.incarnation = 9;
  agent.Connect();
  const v1::Welcome welcome = agent.link->Of(Message::kWelcome)[0].welcome();
  CHECK(welcome.cluster_id() == "c");
  CHECK(welcome.incarnation() == 9);
  const JobId gang = world.Submit("gang", {.tasks = 2});
  agent.Work();
  CHECK(world.task(gang).state == TaskState::kRunning);
  v1::ServerMessage read, exec;
  read.mutable_read_log();
  exec.mutable_open_exec();
  REQUIRE(world.gateway->SendToSession(agent.session, read));
  REQUIRE(world.gateway->SendToSession(agent.session, exec));
  world.Cancel(gang);
  const auto key_of = [](const Message& message) {
    return message.has_prepare()    ? message.prepare().key()
           : message.has_start()    ? message.start().key()
           : message.has_kill()     ? message.kill().key()
           : message.has_read_log() ? message.read_log().key()
                                    : message.open_exec().key();
  };
  for (const auto kind : {Message::kPrepare, Message::kStart, Message::kKill, Message::kReadLog,
                          Message::kOpenExec}) {
    REQUIRE_FALSE(agent.link->Of(kind).empty());
    for (const Message& message : agent.link->Of(kind)) CHECK(key_of(message).incarnation() == 9);
  }
}

TEST_CASE("incarnation: what an agent holds of another one is forgotten, and its job runs anew") {
  Restored restored;
  Agent& agent = restored.agent;
  SECTION("it runs") {}
  SECTION("it has succeeded, after the backup") { agent.Exit(restored.job, 0, 0); }
  agent.Connect();
  const v1::Welcome welcome = agent.link->Of(Message::kWelcome)[0].welcome();
  REQUIRE(welcome.forget_size() == 1);
  CHECK(welcome.forget(0).incarnation() == 5);
  CHECK(welcome.forget(0).job_uid() == restored.job.value);
  agent.incarnation = 9;
  agent.journal.clear();
  agent.Work();
  const Task& task = restored.world.task(restored.job);
  CHECK(restored.world.job(restored.job).status.state == JobState::kRunning);
  CHECK(task.state == TaskState::kRunning);
  CHECK(task.attempt == 2);
  agent.Exit(restored.job, 0, 0);
  CHECK(restored.world.job(restored.job).status.state == JobState::kSucceeded);
}

TEST_CASE("incarnation: a report of another one is acknowledged, and counts for nothing") {
  Restored restored;
  Agent& agent = restored.agent;
  agent.Connect();
  agent.journal.clear();
  agent.incarnation = 9;
  agent.Work();
  REQUIRE(restored.world.task(restored.job).attempt == 2);
  TaskReport foreign = agent.ReportFor(restored.job, 0, 2, TaskReport::EXITED);
  foreign.mutable_key()->set_incarnation(5);
  agent.Report(foreign);
  agent.Work();
  CHECK(restored.world.task(restored.job).state == TaskState::kRunning);
  CHECK(agent.acked.back() == foreign.report_id());
  CHECK(restored.world.gateway->counters().foreign_reports == 1);
}

TEST_CASE(
    "incarnation: agents that know none are refused by a store that has one, and only there") {
  World world;
  Agent old(&world, "n1");
  old.knows_incarnations = false;
  old.Connect();
  CHECK(old.epoch == 1);
  world.identity = {.cluster_id = "c", .incarnation = 9};
  world.Restart();
  old.Connect();
  CHECK(old.epoch == 0);
  CHECK(RefusalOf(old).code() == v1::Refused::INVALID);
  CHECK(RefusalOf(old).message().find("upgrade the agent") != std::string::npos);
}

TEST_CASE("incarnation: a store that was put back by hand is found out by its agents") {
  World world;
  world.identity = {.cluster_id = "c", .incarnation = 9};
  world.Restart();
  Agent agent(&world, "n1");
  agent.last.set_cluster_id("c");
  agent.last.set_incarnation(9);
  agent.last.set_epoch(4);  // of what came after the copy
  SECTION("where its node is known") {
    Agent(&world, "n1").Connect();
    agent.Connect();
    CHECK(RefusalOf(agent).code() == v1::Refused::INVALID);
    CHECK(RefusalOf(agent).message().find("berthd --restore") != std::string::npos);
    CHECK(world.node("n1").status.epoch == 1);
    agent.last.set_epoch(1);  // no later than what the store knows
    agent.Connect();
    CHECK(agent.epoch == 2);
    agent.last.set_epoch(4);
    agent.last.set_incarnation(8);  // of another incarnation
    agent.Connect();
    CHECK(agent.epoch == 3);
  }
  SECTION("where its node was deleted meanwhile, its epochs begin anew") {
    agent.Connect();
    CHECK(agent.epoch == 1);
  }
}

}  // namespace
}  // namespace berth
