// A restored store, or another one, serves agents that ran tasks for the previous one.
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

// One job runs on n1 in incarnation 5; then the store continues as incarnation 9.
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

TEST_CASE("incarnation: an agent forgets tasks of another incarnation, and their job runs again") {
  Restored restored;
  Agent& agent = restored.agent;
  SECTION("it runs") {}
  SECTION("it succeeded after the backup") { agent.Exit(restored.job, 0, 0); }
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

TEST_CASE("incarnation: a report of another incarnation is acknowledged and ignored") {
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
    "incarnation: an agent that does not know incarnations is refused by a store that has one") {
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

// Its agent has registered as node 1; the store knows nothing else.
struct PutBack {
  PutBack() {
    world.identity = {.cluster_id = "c", .incarnation = 9};
    world.Restart();
    agent.incarnation = 9;
    agent.Connect();
    Note();
  }
  // The parts of a Welcome that the agent records.
  void Note() {
    const v1::Welcome welcome = agent.link->Of(Message::kWelcome)[0].welcome();
    agent.last.set_cluster_id(welcome.cluster_id());
    agent.last.set_incarnation(welcome.incarnation());
    agent.last.set_node_id(welcome.node_id());
    agent.last.set_epoch(welcome.epoch());
  }
  void DeleteNode() {
    const NodeId id = world.node("n1").id;
    agent.Disconnect();
    world.Advance(world.leases->lease() + absl::Seconds(2));
    REQUIRE(world.loop->Post([=](Turn& turn) { REQUIRE(turn.Emit(NodeDeleted{id}).ok()); }).ok());
    world.Run();
  }
  void CheckRefused(const std::string& why) {
    agent.Connect();
    CHECK(agent.epoch == 0);
    CHECK(RefusalOf(agent).code() == v1::Refused::INVALID);
    CHECK_THAT(RefusalOf(agent).message(), Catch::Contains(why));
    CHECK_THAT(RefusalOf(agent).message(), Catch::Contains("berthd --restore"));
    CHECK(world.node("n1").status.epoch == 1);
  }
  World world;
  Agent agent{&world, "n1"};
};

TEST_CASE("incarnation: a store that was restored by hand is detected when its agents register") {
  PutBack back;
  Agent& agent = back.agent;
  REQUIRE(agent.last.node_id() == 1);
  SECTION("from an epoch newer than the copy") {
    agent.last.set_epoch(4);
    back.CheckRefused("has registered with epoch 4 before, and this store knows 1");
  }
  SECTION("from a node newer than the copy") {
    agent.last.set_node_id(2);
    back.CheckRefused("has registered as node 2 before");
  }
  SECTION("from a job newer than the copy") {
    back.world.Submit("old");
    agent.last.set_greatest_job(2);
    back.CheckRefused("has tasks of job uid 2, and this store never assigned that uid");
  }
  SECTION("from a job whose uid the restored store assigned again before the agent registered") {
    back.world.Submit("old");
    back.world.Restart();
    back.world.Submit("new");
    back.world.Submit("newer");
    agent.last.set_greatest_job(2);
    back.CheckRefused("has tasks of job uid 2, and this store never assigned that uid");
  }
}

TEST_CASE("incarnation: an agent is accepted if its facts fit the store") {
  PutBack back;
  Agent& agent = back.agent;
  SECTION("its last registration, and a job from before the last start") {
    back.world.Submit("old");
    back.world.Restart();
    agent.last.set_greatest_job(1);
  }
  SECTION("a job that this server assigned after the registration") {
    agent.Connect();
    back.Note();
    agent.last.set_greatest_job(back.world.Submit("new").value);
  }
  SECTION("any fact of another incarnation") {
    agent.last.set_incarnation(8);
    agent.last.set_epoch(4);
    agent.last.set_node_id(5);
    agent.last.set_greatest_job(7);
  }
  SECTION("the epoch of an earlier name of the agent") {
    Agent renamed(&back.world, "n2", agent.agent_id);
    renamed.Connect();
    renamed.Connect();
    agent.last.set_node_id(back.world.node("n2").id.value);
    agent.last.set_epoch(renamed.epoch);
  }
  SECTION("an epoch from a version that sends no node id") {
    agent.last.clear_node_id();
    agent.last.set_epoch(4);
  }
  agent.Connect();
  CHECK(agent.epoch == back.world.node("n1").status.epoch);
}

TEST_CASE("incarnation: a node that was deleted registers again, even if its Welcome is lost") {
  PutBack back;
  Agent& agent = back.agent;
  for (int i = 0; i < 4; ++i) agent.Connect();
  back.Note();
  REQUIRE(agent.last.epoch() == 5);
  back.DeleteNode();
  agent.Connect();
  CHECK(agent.epoch == 1);
  agent.Connect();  // or the agent was killed before it recorded the Welcome
  CHECK(agent.epoch == 2);
  back.Note();
  CHECK(agent.last.node_id() == 2);
  agent.Connect();
  CHECK(agent.epoch == 3);
}

}  // namespace
}  // namespace berth
