#include "clients/agent/logic.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
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

TEST_CASE("Hello opens the stream and Welcome gives the epoch") {
  Agent agent;
  agent.Begin();
  REQUIRE(agent.link.sent.size() == 1);
  const v1::Hello& hello = agent.link.sent[0].hello();
  CHECK(hello.node() == "n1");
  CHECK(hello.agent_id() == "a");
  CHECK(hello.boot_id() == "b");
  CHECK(hello.inventory().devices_size() == 2);
  CHECK(agent.link.sent[0].epoch() == 0);
  CHECK_FALSE(agent.logic->registered());
  agent.Welcome();
  agent.link.sent.clear();
  agent.Advance(absl::Seconds(5));
  REQUIRE(agent.link.sent.size() >= 1);
  CHECK(agent.link.sent[0].has_heartbeat());
  CHECK(agent.link.sent[0].epoch() == 7);
}

TEST_CASE("an epoch that is not newer is ignored on a registered stream") {
  Agent agent;
  agent.Register();
  agent.Welcome(6);
  CHECK(agent.logic->epoch() == 7);
  agent.RunTask(1);
  agent.runner.Take();
  agent.Welcome(7, {Key(1)});  // its forget list is ignored, too
  CHECK(agent.runner.Take() == Calls{});
  agent.Welcome(8);
  CHECK(agent.logic->epoch() == 8);
}

TEST_CASE("messages before Welcome are ignored") {
  Agent agent;
  agent.Begin();
  agent.Prepare(Key(1));
  CHECK(agent.runner.Take() == Calls{});
}

// Records the calls of AgentLogic to the host of commands inside tasks.
class FakeExecs final : public ExecRunner {
 public:
  void Open(const v1::OpenExec& request) override {
    calls.push_back(absl::StrCat("open ", request.request()));
  }
  void Input(const v1::ExecInput& input) override {
    calls.push_back(absl::StrCat("input ", input.request()));
  }
  void EndTask(const TaskId& id) override { calls.push_back("end " + ToString(id)); }
  void Clear() override { calls.push_back("clear"); }
  Calls calls;
};

TEST_CASE("commands run only in running tasks, and end with them and with the connection") {
  Agent agent;
  agent.Register();
  FakeExecs execs;
  agent.logic->SetExecRunner(&execs);
  const auto open = [&](uint64_t request) {
    v1::ServerMessage message;
    message.mutable_open_exec()->set_request(request);
    *message.mutable_open_exec()->mutable_key() = Key(1);
    agent.logic->OnServerMessage(agent.Now(), message);
  };
  agent.Prepare(Key(1), true);
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  agent.link.sent.clear();
  open(1);  // it is starting and does not run yet
  REQUIRE(agent.link.sent.size() == 1);
  CHECK(agent.link.sent[0].exec().end());
  CHECK(agent.link.sent[0].exec().error() == "the task is not running");
  agent.Event(Id(1), TaskEvent::Kind::kRunning);
  open(2);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.logic->OnDisconnected(agent.Now(), "gone");
  CHECK(execs.calls == Calls{"open 2", "end 1-0-1", "clear"});
}

TEST_CASE("node conditions are reported once known, and to every server") {
  Agent agent;
  agent.Register();
  agent.Welcome(8);
  CHECK(agent.link.sent.empty());  // no check has run yet
  agent.logic->SetConditions({});
  REQUIRE(agent.link.sent.size() == 1);
  CHECK(agent.link.sent[0].has_conditions());
  v1::NodeConditions full;
  full.add_conditions()->set_name("disk-space");
  agent.logic->SetConditions(full);
  REQUIRE(agent.link.sent.size() == 2);
  agent.Welcome(9);
  REQUIRE(agent.link.sent.size() == 3);
  CHECK(agent.link.sent[2].epoch() == 9);
  CHECK(agent.link.sent[2].conditions().conditions(0).name() == "disk-space");
}

TEST_CASE("a gang member is prepared, then started") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1));
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1"});
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == TaskReport::PREPARED);
  CHECK(reports[0].reserved_port() == 20001);
  CHECK(agent.runner.Take() == Calls{});
  agent.Start(Key(1));
  CHECK(agent.runner.Take() == Calls{"start 1-0-1"});
  CHECK(agent.runner.journaled_before_start);
  CHECK(agent.runner.last_launch.command_size() == 1);
  CHECK(agent.runner.last_start.master_port() == 20007);
  agent.Event(Id(1), TaskEvent::Kind::kRunning);
  agent.Event(Id(1), TaskEvent::Kind::kExited, 3);
  reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].state() == TaskReport::RUNNING);
  CHECK(reports[1].state() == TaskReport::EXITED);
  CHECK(reports[1].exit_code() == 3);
  CHECK(reports[1].report_id() > reports[0].report_id());
}

TEST_CASE("start_at_once starts without a Start") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1), true);
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1 port", "start 1-0-1"});
  CHECK(agent.runner.last_start.master_port() == 20001);
}

// The server considers it starting. If Hello omitted it, the server would replace a live task.
TEST_CASE("Hello names what is being prepared and then starts without a Start") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1), true);
  agent.Prepare(Key(2));  // the server will send this again
  agent.link.sent.clear();
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Advance(absl::Seconds(60));
  REQUIRE_FALSE(agent.link.sent.empty());
  const v1::Hello& hello = agent.link.sent[0].hello();
  REQUIRE(hello.tasks_size() == 1);
  CHECK(hello.tasks(0).state() == TaskReport::PREPARED);
  CHECK(ToString(ToTaskId(hello.tasks(0).key())) == ToString(Id(1)));
}

TEST_CASE("repeated Prepare and Start change nothing and repeat the report") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1));
  agent.Prepare(Key(1));
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1"});
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  SentReports(agent);
  agent.Prepare(Key(1));
  auto again = SentReports(agent);
  REQUIRE(again.size() == 1);
  CHECK(again[0].state() == TaskReport::PREPARED);
  agent.Start(Key(1));
  agent.Start(Key(1));
  agent.Event(Id(1), TaskEvent::Kind::kRunning);
  agent.Start(Key(1));
  agent.Prepare(Key(1));
  CHECK(agent.runner.Take() == Calls{"start 1-0-1"});
  agent.Event(Id(1), TaskEvent::Kind::kExited, 0);
  SentReports(agent);
  agent.Start(Key(1));
  agent.Prepare(Key(1));
  CHECK(agent.runner.Take() == Calls{});
  again = SentReports(agent);
  REQUIRE(again.size() == 2);
  CHECK(again[0].state() == TaskReport::EXITED);
}

TEST_CASE("an ended and acked task does not start again") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  for (const auto& report : SentReports(agent)) agent.Ack(report.report_id());
  agent.runner.Take();
  agent.Prepare(Key(1), true);
  CHECK(agent.runner.Take() == Calls{});
  CHECK(SentReports(agent).at(0).state() == TaskReport::EXITED);
}

TEST_CASE("an older attempt is ignored") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1, 3));
  agent.runner.Take();
  agent.Prepare(Key(1, 2));
  agent.Start(Key(1, 2));
  CHECK(agent.runner.Take() == Calls{});
  CHECK(SentReports(agent).empty());
  agent.Prepare(Key(1, 4));
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-4"});
}

TEST_CASE("Start and Kill of an unknown task are answered") {
  Agent agent;
  agent.Register();
  agent.Start(Key(1));
  agent.Kill(Key(2));
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].state() == TaskReport::REFUSED);
  CHECK(reports[0].fault() == TaskReport::NODE);
  CHECK(reports[1].state() == TaskReport::EXITED);
  CHECK(reports[1].cause() == TaskReport::KILLED);
  agent.Prepare(Key(2));  // it must not start after its end was reported
  CHECK(agent.runner.Take() == Calls{});
}

TEST_CASE("Kill ends a prepared task at once and a running one through the runner") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1));
  agent.Kill(Key(1));
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1", "discard 1-0-1"});
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].cause() == TaskReport::KILLED);
  CHECK(reports[0].message() == "cancelled");
  agent.RunTask(2);
  agent.runner.Take();
  agent.Kill(Key(2));
  CHECK(agent.runner.Take() == Calls{"kill 2-0-1 SIGUSR1 2s KILLED"});
}

TEST_CASE("the lease counts from when the acked heartbeat was sent") {
  Agent agent;
  agent.Register();  // at 100 s: lease until 115
  agent.RunTask(1);
  agent.runner.Take();
  CHECK(agent.runner.lease == absl::Seconds(115));
  agent.Advance(absl::Seconds(5));
  absl::Duration sent_at;
  uint64_t sequence = 0;
  for (const auto& message : agent.link.sent) {
    if (message.has_heartbeat()) sequence = message.heartbeat().sequence();
  }
  REQUIRE(sequence > 0);
  sent_at = agent.runner.lease;
  agent.now += absl::Seconds(4);  // the ack was slow
  agent.AckHeartbeat(sequence);
  CHECK(agent.runner.lease > sent_at);
  CHECK(agent.runner.lease <= absl::Seconds(120));  // not 124
  agent.AckHeartbeat(sequence);                     // again: no longer
  CHECK(agent.runner.lease <= absl::Seconds(120));
}

TEST_CASE("a lapsed lease kills strict tasks only, and no strict task starts until it is renewed") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.Prepare(Key(2));  // strict, prepared
  agent.Event(Id(2), TaskEvent::Kind::kPrepared);
  agent.Prepare(Key(3), true, false);  // not strict
  agent.Event(Id(3), TaskEvent::Kind::kPrepared);
  agent.Event(Id(3), TaskEvent::Kind::kRunning);
  agent.runner.Take();
  SentReports(agent);
  agent.Advance(absl::Seconds(14));
  CHECK(agent.runner.Take() == Calls{});
  agent.now += absl::Seconds(2);  // a Start that was buffered while the machine slept
  agent.Start(Key(2));
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 3s LEASE_LAPSED", "discard 2-0-1"});
  agent.Prepare(Key(4), true);
  CHECK(agent.runner.Take() == Calls{});
  agent.Prepare(Key(5), true, false);
  CHECK(agent.runner.Take() == Calls{"prepare 5-0-1 port"});
  bool refused = false;
  for (const auto& report : SentReports(agent)) {
    refused |= ToTaskId(report.key()) == Id(4) && report.state() == TaskReport::REFUSED &&
               report.fault() == TaskReport::NODE;
  }
  CHECK(refused);
}

TEST_CASE("the agent does not wait for a Welcome that would leave hardly any lease") {
  Agent agent;
  agent.Begin();
  agent.Advance(absl::Seconds(7));
  CHECK(agent.link.connects == 1);
  agent.Advance(absl::Seconds(1));  // half a lease of 15 s
  CHECK(agent.logic->last_error() == "no response to Hello");
}

TEST_CASE("the lease also lapses without a connection") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.runner.Take();
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Advance(absl::Seconds(20));
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 3s LEASE_LAPSED"});
}

TEST_CASE("reports are repeated after a reconnect until they are acked, in order") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.RunTask(2);
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Event(Id(2), TaskEvent::Kind::kExited, 1);
  agent.link.sent.clear();
  agent.Advance(absl::Seconds(1));
  REQUIRE(agent.link.sent.size() == 1);
  CHECK(agent.link.sent[0].hello().tasks_size() == 2);
  agent.Welcome(8);
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].state() == TaskReport::RUNNING);
  CHECK(reports[1].state() == TaskReport::EXITED);
  CHECK(reports[0].report_id() < reports[1].report_id());
  agent.Ack(reports[1].report_id());
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Advance(absl::Seconds(2));
  agent.Welcome(9);
  reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(ToTaskId(reports[0].key()) == Id(1));
}

TEST_CASE("a restarted agent adopts, repeats unacked reports, and continues report ids") {
  FakeJournal disk;
  uint64_t last_report = 0;
  {
    Agent agent(&disk);
    agent.Register();
    agent.RunTask(1);
    agent.Prepare(Key(2));
    agent.Event(Id(2), TaskEvent::Kind::kPrepared);
    agent.Prepare(Key(4), true);
    agent.Event(Id(4),
                TaskEvent::Kind::kPrepared);  // started, but killed before it ran
    agent.RunTask(3);
    agent.Event(Id(3), TaskEvent::Kind::kExited, 9);
    for (const auto& report : SentReports(agent)) {
      if (ToTaskId(report.key()) == Id(1)) agent.Ack(report.report_id());
      last_report = report.report_id();
    }
  }
  Agent agent(&disk);
  agent.Begin(false, absl::Seconds(500));
  CHECK(agent.runner.Take() == Calls{"adopt 1-0-1", "adopt 2-0-1", "adopt 4-0-1"});
  CHECK(agent.link.sent[0].hello().tasks_size() == 4);
  agent.link.sent.clear();
  agent.Welcome();
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 3);  // the ack of 1 was not synced: repeated, which is harmless
  agent.Prepare(Key(4), true);   // at most once
  agent.Prepare(Key(1), true);
  CHECK(agent.runner.Take() == Calls{});
  SentReports(agent);
  agent.Event(Id(1), TaskEvent::Kind::kRunning);  // already known: no second report
  CHECK(SentReports(agent).empty());
  agent.Event(Id(1), TaskEvent::Kind::kExited, 0);
  reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].report_id() > last_report);
  agent.Start(Key(2));
  CHECK(agent.runner.Take() == Calls{"start 2-0-1"});
  CHECK(agent.runner.last_launch.command_size() == 1);  // the journal kept what a start needs
}

TEST_CASE("after a reboot nothing runs, and every task is reported as ended by the reboot") {
  FakeJournal disk;
  {
    Agent agent(&disk);
    agent.Register();
    agent.RunTask(1);
  }
  Agent agent(&disk);
  agent.Begin(true);
  CHECK(agent.runner.Take() == Calls{});
  REQUIRE(agent.link.sent[0].hello().tasks_size() == 1);
  CHECK(agent.link.sent[0].hello().tasks(0).state() == TaskReport::EXITED);
  CHECK(agent.link.sent[0].hello().tasks(0).cause() == TaskReport::AGENT_REBOOT);
}

TEST_CASE("a restart after the lease lapsed fences adopted tasks") {
  FakeJournal disk;
  {
    Agent agent(&disk);
    agent.Register();
    agent.RunTask(1);
  }
  Agent agent(&disk);
  agent.now = absl::Seconds(200);
  agent.Begin(false, absl::Seconds(115));
  CHECK(agent.runner.Take() == Calls{"adopt 1-0-1", "kill 1-0-1 SIGTERM 3s LEASE_LAPSED"});
}

TEST_CASE("Welcome forgets tasks: killed, dropped, never reported") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.Prepare(Key(2));
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Advance(absl::Seconds(1));
  agent.runner.Take();
  agent.link.sent.clear();
  agent.Welcome(8, {Key(1), Key(2), Key(99)});
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGKILL 0 KILLED", "discard 2-0-1"});
  SentReports(agent);
  agent.Event(Id(1), TaskEvent::Kind::kExited, 137);
  CHECK(SentReports(agent).empty());
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.link.sent.clear();
  agent.Advance(absl::Seconds(1));
  REQUIRE(agent.link.sent.size() >= 1);
  CHECK(agent.link.sent[0].hello().tasks_size() == 0);
}

TEST_CASE("devices: unknown and held ones are refused, a task waits for those of a dying task") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1), true, true, {"gpu-0"});
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  agent.Prepare(Key(2), true, true, {"gpu-9"});
  agent.Prepare(Key(3), true, true, {"gpu-0", "gpu-1"});
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].message() == "device gpu-9 is not on this node");
  CHECK(reports[0].fault() == TaskReport::NODE);
  CHECK(reports[1].fault() == TaskReport::NODE);
  CHECK(reports[1].message() == "device gpu-0 is held by task 1-0-1");
  agent.Kill(Key(1));
  agent.runner.Take();
  agent.Prepare(Key(4), true, true, {"gpu-0"});
  CHECK(agent.runner.Take() == Calls{});
  agent.Event(Id(1), TaskEvent::Kind::kExited, 143);
  CHECK(agent.runner.Take() == Calls{"prepare 4-0-1 port"});
}

TEST_CASE("devices: shares of one device are held together, up to the whole") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1), true, true, {"gpu-0"}, {500});
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  agent.Prepare(Key(2), true, true, {"gpu-0"}, {300});
  agent.Event(Id(2), TaskEvent::Kind::kPrepared);
  CHECK(SentReports(agent).empty());
  agent.Prepare(Key(3), true, true, {"gpu-0"}, {300});
  agent.Prepare(Key(4), true, true, {"gpu-0"});
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(absl::StrContains(reports[0].message(), "device gpu-0 is held by task"));
  CHECK(absl::StrContains(reports[1].message(), "device gpu-0 is held by task"));
  agent.Kill(Key(1));
  agent.runner.Take();
  agent.Prepare(Key(5), true, true, {"gpu-0"}, {700});  // once the first one has ended
  CHECK(agent.runner.Take() == Calls{});
  agent.Event(Id(1), TaskEvent::Kind::kExited, 143);
  CHECK(agent.runner.Take() == Calls{"prepare 5-0-1 port"});
}

TEST_CASE("devices: an oversubscribed one holds more shares, but a whole one only alone") {
  Agent agent;
  v1::NodeInventory inventory;
  inventory.add_devices()->set_uuid("gpu-0");
  inventory.mutable_devices(0)->set_kind("gpu");
  inventory.mutable_devices(0)->set_oversubscription(150);
  agent.Register();
  agent.logic->SetInventory(agent.Now(), inventory);
  agent.Welcome(8);
  agent.link.sent.clear();
  for (uint64_t job : {1, 2, 3}) {
    agent.Prepare(Key(job), true, true, {"gpu-0"}, {500});
    agent.Event(Id(job), TaskEvent::Kind::kPrepared);
  }
  CHECK(SentReports(agent).empty());
  agent.Prepare(Key(4), true, true, {"gpu-0"}, {1});
  agent.Prepare(Key(5), true, true, {"gpu-0"});
  CHECK(SentReports(agent).size() == 2);
}

TEST_CASE("devices: shares by memory are held together, too") {
  Agent agent;
  agent.Register();
  const auto prepare = [&](uint64_t job, int share) {
    v1::ServerMessage message;
    *message.mutable_prepare()->mutable_key() = Key(job);
    v1::TaskLaunch& launch = *message.mutable_prepare()->mutable_launch();
    launch.add_command("train");
    launch.add_device_uuids("gpu-0");
    launch.add_device_kinds("gpu");
    launch.add_device_shares(1000);
    launch.add_device_memory_shares(share);
    agent.logic->OnServerMessage(agent.Now(), message);
  };
  prepare(1, 600);
  prepare(2, 400);
  CHECK(SentReports(agent).empty());
  prepare(3, 1);
  CHECK(SentReports(agent).size() == 1);
}

TEST_CASE("a full disk refuses starts and defers exits, any other journal error is fatal") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.Prepare(Key(2), true);
  agent.runner.Take();
  SentReports(agent);
  agent.journal.next_error = absl::ResourceExhaustedError("disk full");
  agent.Event(Id(2), TaskEvent::Kind::kPrepared);
  CHECK(agent.runner.Take() == Calls{"discard 2-0-1"});
  agent.Event(Id(1), TaskEvent::Kind::kExited, 0);
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].state() == TaskReport::REFUSED);
  CHECK(reports[0].fault() == TaskReport::NODE);
  CHECK(reports[1].state() == TaskReport::EXITED);
  agent.journal.next_error = absl::OkStatus();
  agent.Advance(absl::Seconds(2));
  CHECK(agent.journal.state.tasks.at(Id(1)).phase() == agent::v1::TaskRecord::ENDED);
  agent.journal.next_error = absl::InternalError("fsync: I/O error");
  agent.RunTask(3);
  CHECK_FALSE(agent.logic->fatal().ok());
}

TEST_CASE("reconnects back off with jitter up to a bound and honor retry_after") {
  Agent agent;
  agent.Begin();
  absl::Duration longest;
  for (int i = 0; i < 40; ++i) {
    agent.logic->OnDisconnected(agent.Now(), "connection refused");
    const absl::Duration wait = agent.logic->NextWake() - agent.now;
    CHECK(wait <= kReconnect.max_backoff);
    longest = std::max(longest, wait);
    agent.Advance(wait);
    CHECK(agent.link.connects == i + 2);
  }
  CHECK(longest > kReconnect.max_backoff / 2);
  v1::ServerMessage message;
  message.mutable_refused()->set_code(v1::Refused::BUSY);
  message.mutable_refused()->mutable_retry_after()->set_seconds(50);
  agent.logic->OnServerMessage(agent.Now(), message);
  CHECK(agent.logic->NextWake() - agent.now >= absl::Seconds(50));
  CHECK_FALSE(agent.link.connected);
}

TEST_CASE("the agent leaves a silent server: no response to Hello, no ack of heartbeats") {
  Agent agent;
  agent.Begin();
  agent.Advance(absl::Seconds(11));
  CHECK(agent.link.connects >= 2);
  agent.Welcome();
  const int before = agent.link.connects;
  agent.Advance(absl::Seconds(40));
  CHECK(agent.link.connects > before);
}

}  // namespace
}  // namespace berth
