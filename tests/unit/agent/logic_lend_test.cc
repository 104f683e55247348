// The agent's logic: frozen tasks that lend their devices.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::Id;
using testing::Key;
using testing::SentReports;
using v1::TaskReport;
using Calls = std::vector<std::string>;

struct LendingAgent : Agent {
  explicit LendingAgent(testing::FakeJournal* disk = nullptr) : Agent(disk) {
    Register();
    RunWith(1, {"gpu-0"});
    SentReports(*this);
  }
  void RunWith(uint64_t uid, std::vector<std::string> devices) {
    Prepare(Key(uid), true, true, std::move(devices));
    Event(Id(uid), TaskEvent::Kind::kPrepared);
    Event(Id(uid), TaskEvent::Kind::kRunning);
    runner.Take();
  }
  void Freeze(uint64_t uid, int64_t request) {
    v1::ServerMessage message;
    *message.mutable_freeze_task()->mutable_key() = Key(uid);
    message.mutable_freeze_task()->set_request(request);
    message.mutable_freeze_task()->set_checkpoint_devices(request != 0);
    Tell(message);
  }
  void TellFrozen(uint64_t uid, int64_t request, bool released, const std::string& why = "") {
    TaskEvent event;
    event.id = Id(uid);
    event.kind = request != 0 ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed;
    event.freeze_request = request;
    event.devices_released = released;
    event.message = why;
    logic->OnTaskEvent(Now(), event);
  }
  void Lend(uint64_t uid, int64_t request) {
    Freeze(uid, request);
    TellFrozen(uid, request, true);
    SentReports(*this);
    runner.Take();
  }
};

TEST_CASE("lend: a frozen task releases its devices, and takes them back before it goes on") {
  LendingAgent agent;
  agent.Freeze(1, 5);
  CHECK(agent.runner.Take() == Calls{"freeze 1-0-1 5 save"});
  agent.TellFrozen(1, 5, true);
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].devices_released());
  CHECK(agent.logic->DeviceInUse("gpu-0"));  // it is not to be divided
  agent.RunWith(2, {"gpu-0"});
  SentReports(agent);
  agent.Freeze(1, 0);
  CHECK(agent.runner.Take().empty());  // it waits: the other one is still there
  agent.Event(Id(2), TaskEvent::Kind::kExited);
  CHECK(agent.runner.Take() == Calls{"freeze 1-0-1 0"});
  agent.TellFrozen(1, 0, false);
  reports = SentReports(agent);
  CHECK(reports.back().state() == TaskReport::RUNNING);
  CHECK_FALSE(reports.back().devices_released());
  agent.Prepare(Key(3), false, true, {"gpu-0"});
  CHECK(SentReports(agent).back().state() == TaskReport::REFUSED);  // it has them again
}

TEST_CASE("lend: without a save the devices stay, and the report says why") {
  LendingAgent agent;
  agent.Freeze(1, 5);
  agent.TellFrozen(1, 5, false, "UVM");
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == TaskReport::PAUSED);
  CHECK_FALSE(reports[0].devices_released());
  CHECK(reports[0].message() == "UVM");
  agent.Prepare(Key(2), false, true, {"gpu-0"});
  CHECK(SentReports(agent).back().state() == TaskReport::REFUSED);
}

TEST_CASE("lend: an agent that was restarted knows what is lent") {
  testing::FakeJournal disk;
  {
    LendingAgent agent(&disk);
    agent.Lend(1, 5);
  }
  LendingAgent::Agent again(&disk);
  again.Begin(false, absl::Seconds(1000));
  REQUIRE(again.link.sent[0].hello().tasks().size() == 1);
  CHECK(again.link.sent[0].hello().tasks(0).devices_released());
  again.Welcome();
  SentReports(again);
  again.Prepare(Key(2), false, true, {"gpu-0"});
  again.Event(Id(2), TaskEvent::Kind::kPrepared);
  CHECK(SentReports(again).back().state() == TaskReport::PREPARED);
}

TEST_CASE("lend: a task that went on while no agent ran takes its devices back") {
  LendingAgent agent;
  agent.Lend(1, 5);
  agent.TellFrozen(1, 0, false);
  CHECK(SentReports(agent).back().state() == TaskReport::RUNNING);
  agent.Prepare(Key(2), false, true, {"gpu-0"});
  CHECK(SentReports(agent).back().state() == TaskReport::REFUSED);
}

TEST_CASE("lend: a task that waits for its devices may be frozen again, or end") {
  LendingAgent agent;
  agent.Lend(1, 5);
  agent.RunWith(2, {"gpu-0"});
  agent.Freeze(1, 0);
  CHECK(agent.runner.Take().empty());
  SECTION("frozen again") {
    agent.Freeze(1, 6);
    CHECK(agent.runner.Take() == Calls{"freeze 1-0-1 6 save"});
    agent.TellFrozen(1, 6, true);
    CHECK(SentReports(agent).back().devices_released());
    agent.Event(Id(2), TaskEvent::Kind::kExited);
    CHECK(agent.runner.Take().empty());  // it does not go on
  }
  SECTION("killed") {
    agent.Kill(Key(1));
    agent.runner.Take();
    agent.Event(Id(2), TaskEvent::Kind::kExited);
    CHECK(agent.runner.Take().empty());
    agent.Event(Id(1), TaskEvent::Kind::kExited);
    CHECK(SentReports(agent).back().state() == TaskReport::EXITED);
    CHECK_FALSE(agent.logic->DeviceInUse("gpu-0"));
  }
}

TEST_CASE(
    "lend: a task that waits for a device of a task that is stopped gets it when it is lent") {
  LendingAgent agent;
  agent.RunWith(2, {"gpu-1"});
  agent.Freeze(2, 5);
  agent.TellFrozen(2, 5, true);
  agent.Prepare(Key(3), false, true, {"gpu-0", "gpu-1"});
  CHECK(SentReports(agent).back().state() == TaskReport::REFUSED);  // gpu-0 is held
  agent.Prepare(Key(4), false, true, {"gpu-1"});
  CHECK(agent.runner.Take().back() == "prepare 4-0-1");
}

}  // namespace
}  // namespace berth
