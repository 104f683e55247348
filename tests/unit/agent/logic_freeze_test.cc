// The agent's logic: tasks that the server freezes and lets go on.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::Id;
using testing::Key;
using testing::SentReports;
using v1::TaskReport;

void SendFreeze(Agent& agent, uint64_t uid, int64_t request) {
  v1::ServerMessage message;
  *message.mutable_freeze_task()->mutable_key() = Key(uid);
  message.mutable_freeze_task()->set_request(request);
  agent.Tell(message);
}

void TellFrozen(Agent& agent, uint64_t uid, int64_t request) {
  TaskEvent event;
  event.id = Id(uid);
  event.kind = request != 0 ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed;
  event.freeze_request = request;
  agent.logic->OnTaskEvent(agent.Now(), event);
}

struct FreezingAgent : Agent {
  explicit FreezingAgent(testing::FakeJournal* disk = nullptr) : Agent(disk) {
    Register();
    RunTask(1);
    SentReports(*this);
    runner.Take();
  }
};

TEST_CASE("freeze: a task is frozen and reported, and goes on") {
  FreezingAgent agent;
  SendFreeze(agent, 1, 5);
  CHECK(agent.runner.Take() == std::vector<std::string>{"freeze 1-0-1 5"});
  CHECK(SentReports(agent).empty());  // until it is frozen
  TellFrozen(agent, 1, 5);
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == TaskReport::PAUSED);
  CHECK(reports[0].freeze_request() == 5);
  SendFreeze(agent, 1, 5);  // repeated: the report is, too
  CHECK(agent.runner.Take().empty());
  CHECK(SentReports(agent).size() == 1);
  SendFreeze(agent, 1, 0);
  CHECK(agent.runner.Take() == std::vector<std::string>{"freeze 1-0-1 0"});
  TellFrozen(agent, 1, 0);
  reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == TaskReport::RUNNING);
  SendFreeze(agent, 1, 6);
  TellFrozen(agent, 1, 6);
  CHECK(SentReports(agent).back().freeze_request() == 6);
}

TEST_CASE("freeze: a registration tells that a task is frozen, also after a restart") {
  testing::FakeJournal disk;
  {
    FreezingAgent agent(&disk);
    SendFreeze(agent, 1, 5);
    TellFrozen(agent, 1, 5);
  }
  Agent again(&disk);
  again.Begin(false, absl::Seconds(1000));
  REQUIRE(again.link.sent.size() == 1);
  const auto& tasks = again.link.sent[0].hello().tasks();
  REQUIRE(tasks.size() == 1);
  CHECK(tasks[0].state() == TaskReport::PAUSED);
  CHECK(tasks[0].freeze_request() == 5);
}

TEST_CASE("freeze: without effect for tasks that do not run, or that are being killed") {
  FreezingAgent agent;
  SendFreeze(agent, 2, 5);  // unknown
  agent.Prepare(Key(3));
  agent.Event(Id(3), TaskEvent::Kind::kPrepared);
  agent.runner.Take();
  SendFreeze(agent, 3, 5);
  agent.Kill(Key(1));
  agent.runner.Take();
  SendFreeze(agent, 1, 5);
  CHECK(agent.runner.Take().empty());
  SentReports(agent);
  TellFrozen(agent, 1, 5);  // it was frozen just before
  CHECK(SentReports(agent).empty());
}

}  // namespace
}  // namespace berth
