// Members of gangs: epochs, and signals to tasks that go on.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::FakeJournal;
using testing::Id;
using testing::Key;
using testing::SentReports;
using v1::TaskReport;
using Calls = std::vector<std::string>;

// A member of a rigid gang, task `index` of job 1.
void PrepareMember(Agent& agent, uint32_t index, uint32_t attempt, uint32_t epoch) {
  v1::ServerMessage message;
  *message.mutable_prepare()->mutable_key() = ToKey({1, index, attempt});
  message.mutable_prepare()->mutable_launch()->set_rigid(true);
  message.mutable_prepare()->mutable_launch()->set_epoch(epoch);
  agent.logic->OnServerMessage(agent.Now(), message);
}

TEST_CASE("no member of a rigid gang starts in another epoch than the one it was prepared for") {
  Agent agent;
  agent.Register();
  PrepareMember(agent, 0, 1, 4);
  agent.Event({1, 0, 1}, TaskEvent::Kind::kPrepared);
  v1::ServerMessage start;
  *start.mutable_start()->mutable_key() = ToKey({1, 0, 1});
  start.mutable_start()->set_epoch(3);
  agent.runner.Take();
  SECTION("of another epoch") {
    agent.logic->OnServerMessage(agent.Now(), start);
    CHECK(agent.runner.Take() == Calls{"discard 1-0-1"});
    CHECK(SentReports(agent).back().state() == TaskReport::REFUSED);
  }
  SECTION("beside a member of a newer one") {
    PrepareMember(agent, 1, 2, 5);
    start.mutable_start()->set_epoch(4);
    agent.logic->OnServerMessage(agent.Now(), start);
    CHECK(agent.runner.Take() == Calls{"prepare 1-1-2", "discard 1-0-1"});
    PrepareMember(agent, 2, 1, 4);
    CHECK(agent.runner.Take() == Calls{});
    CHECK(SentReports(agent).back().message() == "its gang is in a newer epoch");
  }
  SECTION("of its own, or of a server that knows none") {
    start.mutable_start()->set_epoch(GENERATE(4u, 0u));
    agent.logic->OnServerMessage(agent.Now(), start);
    CHECK(agent.runner.Take() == Calls{"start 1-0-1"});
  }
}

TEST_CASE("a signal is sent once per request to a running task, also across a restart") {
  FakeJournal disk;
  const auto ask = [](Agent& agent, int64_t request) {
    v1::ServerMessage message;
    *message.mutable_signal_task()->mutable_key() = Key(1);
    message.mutable_signal_task()->set_signal("SIGUSR1");
    message.mutable_signal_task()->set_request(request);
    agent.logic->OnServerMessage(agent.Now(), message);
  };
  {
    Agent agent(&disk);
    agent.Register();
    agent.Prepare(Key(1), true);
    ask(agent, 5);  // it does not run yet
    agent.Event(Id(1), TaskEvent::Kind::kPrepared);
    agent.Event(Id(1), TaskEvent::Kind::kRunning);
    agent.runner.Take();
    ask(agent, 5);
    CHECK(agent.runner.Take() == Calls{"signal 1-0-1 SIGUSR1"});
    ask(agent, 5);
    CHECK(agent.runner.Take() == Calls{});
    ask(agent, 6);
    CHECK(agent.runner.Take() == Calls{"signal 1-0-1 SIGUSR1"});
    for (const auto& record : disk.later) disk.state.Apply(record);
  }
  Agent restarted(&disk);
  restarted.Register();
  restarted.runner.Take();
  ask(restarted, 6);
  CHECK(restarted.runner.Take() == Calls{});
}

}  // namespace
}  // namespace berth
