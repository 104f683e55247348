#include "clients/agent/logic.h"

#include <catch2/catch.hpp>

#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

using testing::FakeJournal;
using testing::FakeLink;
using testing::FakeLogs;
using testing::FakeRunner;
using v1::TaskReport;
using Calls = std::vector<std::string>;

v1::TaskKey Key(uint64_t uid, uint32_t attempt = 1) { return ToKey({uid, 0, attempt}); }
TaskId Id(uint64_t uid, uint32_t attempt = 1) { return {uid, 0, attempt}; }

// One agent with time in the test's hands.
struct Agent {
  explicit Agent(FakeJournal* disk = nullptr)
      : runner(disk != nullptr ? disk : &own), journal(disk != nullptr ? *disk : own) {}

  void Begin(bool rebooted = false, std::optional<absl::Duration> lease = std::nullopt) {
    v1::NodeInventory inventory;
    for (const char* uuid : {"gpu-0", "gpu-1"}) {
      inventory.add_devices()->set_uuid(uuid);
      inventory.mutable_devices()->rbegin()->set_kind("gpu");
    }
    logic = std::make_unique<AgentLogic>(AgentLogic::Options{.node = "n1",
                                                             .agent_id = "a",
                                                             .boot_id = "b",
                                                             .version = "1",
                                                             .inventory = inventory,
                                                             .keep_ended = absl::Hours(1)},
                                         link, journal, runner, logs, random);
    logic->Begin(Now(), {.journal = journal.state, .rebooted = rebooted, .lease_deadline = lease});
  }
  void Welcome(uint64_t epoch = 7, std::vector<v1::TaskKey> forget = {}) {
    v1::ServerMessage message;
    message.mutable_welcome()->set_epoch(epoch);
    message.mutable_welcome()->mutable_lease()->set_seconds(15);
    message.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(5);
    for (const auto& key : forget) *message.mutable_welcome()->add_forget() = key;
    logic->OnServerMessage(Now(), message);
  }
  void Register() {
    Begin();
    Welcome();
    link.sent.clear();
  }
  void Prepare(v1::TaskKey key, bool at_once = false, bool fence = true,
               std::vector<std::string> devices = {}) {
    v1::ServerMessage message;
    *message.mutable_prepare()->mutable_key() = key;
    message.mutable_prepare()->set_start_at_once(at_once);
    v1::TaskLaunch& launch = *message.mutable_prepare()->mutable_launch();
    launch.add_command("train");
    launch.set_fence(fence);
    launch.mutable_kill_grace()->set_seconds(3);
    for (const auto& uuid : devices) {
      launch.add_device_uuids(uuid);
      launch.add_device_kinds("gpu");
    }
    logic->OnServerMessage(Now(), message);
  }
  void Start(v1::TaskKey key) {
    v1::ServerMessage message;
    *message.mutable_start()->mutable_key() = key;
    message.mutable_start()->set_master_port(20007);
    logic->OnServerMessage(Now(), message);
  }
  void Kill(v1::TaskKey key) {
    v1::ServerMessage message;
    *message.mutable_kill()->mutable_key() = key;
    message.mutable_kill()->mutable_grace()->set_seconds(2);
    message.mutable_kill()->set_signal("SIGUSR1");
    message.mutable_kill()->set_reason("cancelled");
    logic->OnServerMessage(Now(), message);
  }
  void Ack(uint64_t report) {
    v1::ServerMessage message;
    message.mutable_report_ack()->set_report_id(report);
    logic->OnServerMessage(Now(), message);
  }
  void AckHeartbeat(uint64_t sequence) {
    v1::ServerMessage message;
    message.mutable_heartbeat_ack()->set_sequence(sequence);
    logic->OnServerMessage(Now(), message);
  }
  void Event(TaskId id, TaskEvent::Kind kind, int code = 0) {
    TaskEvent event;
    event.id = id;
    event.kind = kind;
    event.exit_code = code;
    event.port = kind == TaskEvent::Kind::kPrepared ? 20001 : 0;
    logic->OnTaskEvent(Now(), event);
  }
  void RunTask(uint64_t uid) {
    Prepare(Key(uid), true);
    Event(Id(uid), TaskEvent::Kind::kPrepared);
    Event(Id(uid), TaskEvent::Kind::kRunning);
  }
  // Goes forward from wake to wake, as a loop would.
  void Advance(absl::Duration by) {
    const absl::Duration end = now + by;
    while (logic->NextWake() <= end) {
      now = std::max(now, logic->NextWake());
      logic->Tick(Now());
    }
    now = end;
    logic->Tick(Now());
  }
  Instant Now() const {
    return {.steady = now, .wall = absl::FromUnixSeconds(1'800'000'000) + now};
  }

  FakeJournal own;
  FakeLink link;
  FakeRunner runner;
  FakeJournal& journal;
  FakeLogs logs;
  Random random{1};
  std::unique_ptr<AgentLogic> logic;
  absl::Duration now = absl::Seconds(100);
};

std::vector<v1::TaskReport> SentReports(Agent& agent) { return agent.link.TakeReports(); }

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
  agent.Welcome(7, {Key(1)});  // its forget list does not count either
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

TEST_CASE("a lapsed lease kills strict tasks only, and nothing strict starts until it is renewed") {
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
  agent.now += absl::Seconds(2);  // a Start that lay in a buffer while the machine slept
  agent.Start(Key(2));
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 3s LEASE_LAPSED", "discard 2-0-1"});
  agent.Prepare(Key(4), true);
  CHECK(agent.runner.Take() == Calls{});
  agent.Prepare(Key(5), true, false);
  CHECK(agent.runner.Take() == Calls{"prepare 5-0-1 port"});
  bool refused = false;
  for (const auto& report : SentReports(agent)) {
    refused |= ToTaskId(report.key()) == Id(4) && report.cause() == TaskReport::LEASE_LAPSED;
  }
  CHECK(refused);
}

TEST_CASE("the lease lapses without a connection, too") {
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

TEST_CASE("a restarted agent adopts, repeats what is unacked, and goes on with report ids") {
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
                TaskEvent::Kind::kPrepared);  // started, and killed before it was told to run
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
  REQUIRE(reports.size() ==
          3);  // the ack of 1 was not written with a sync: repeated, which is harmless
  agent.Prepare(Key(4), true);  // at most once
  agent.Prepare(Key(1), true);
  CHECK(agent.runner.Take() == Calls{});
  SentReports(agent);
  agent.Event(Id(1), TaskEvent::Kind::kRunning);  // known already: no second report
  CHECK(SentReports(agent).empty());
  agent.Event(Id(1), TaskEvent::Kind::kExited, 0);
  reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].report_id() > last_report);
  agent.Start(Key(2));
  CHECK(agent.runner.Take() == Calls{"start 2-0-1"});
  CHECK(agent.runner.last_launch.command_size() == 1);  // the journal kept what a start needs
}

TEST_CASE("after a reboot nothing runs and everything is reported so") {
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

TEST_CASE("a restart after the lease lapsed fences what it adopts") {
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

TEST_CASE("devices: unknown and held ones are refused, those of a dying task are waited for") {
  Agent agent;
  agent.Register();
  agent.Prepare(Key(1), true, true, {"gpu-0"});
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  agent.Prepare(Key(2), true, true, {"gpu-9"});
  agent.Prepare(Key(3), true, true, {"gpu-0", "gpu-1"});
  auto reports = SentReports(agent);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].message() == "device gpu-9 is not on this node");
  CHECK(reports[1].message() == "device gpu-0 is held by task 1-0-1");
  agent.Kill(Key(1));
  agent.runner.Take();
  agent.Prepare(Key(4), true, true, {"gpu-0"});
  CHECK(agent.runner.Take() == Calls{});
  agent.Event(Id(1), TaskEvent::Kind::kExited, 143);
  CHECK(agent.runner.Take() == Calls{"prepare 4-0-1 port"});
}

TEST_CASE(
    "a full disk refuses starts and keeps exits for later; any other journal error is fatal") {
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
  CHECK(reports[1].state() == TaskReport::EXITED);
  agent.journal.next_error = absl::OkStatus();
  agent.Advance(absl::Seconds(2));
  CHECK(agent.journal.state.tasks.at(Id(1)).phase() == agent::v1::TaskRecord::ENDED);
  agent.journal.next_error = absl::InternalError("fsync: I/O error");
  agent.RunTask(3);
  CHECK_FALSE(agent.logic->fatal().ok());
}

TEST_CASE("reconnects back off with jitter up to a bound and honour retry_after") {
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

TEST_CASE("a silent server is left: no answer to Hello, no ack of heartbeats") {
  Agent agent;
  agent.Begin();
  agent.Advance(absl::Seconds(11));
  CHECK(agent.link.connects >= 2);
  agent.Welcome();
  const int before = agent.link.connects;
  agent.Advance(absl::Seconds(40));
  CHECK(agent.link.connects > before);
}

TEST_CASE("logs: chunks, end, follow until the task has ended, cancel, flow bound") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.link.sent.clear();
  const auto read = [&](uint64_t request, bool follow, int64_t from = 0) {
    v1::ServerMessage message;
    message.mutable_read_log()->mutable_from()->set_stdout_bytes(from);
    message.mutable_read_log()->set_request(request);
    *message.mutable_read_log()->mutable_key() = Key(1);
    message.mutable_read_log()->set_follow(follow);
    agent.logic->OnServerMessage(agent.Now(), message);
  };
  const auto chunks = [&] {
    std::vector<v1::LogChunk> out;
    for (const auto& message : agent.link.sent) {
      if (message.has_log()) out.push_back(message.log());
    }
    agent.link.sent.clear();
    return out;
  };
  agent.logs.pieces = {"one\n", "two\n"};
  read(1, false);
  auto got = chunks();
  REQUIRE(got.size() == 4);
  CHECK(got[0].data().empty());
  CHECK(got[0].next().stdout_bytes() == 0);
  CHECK(got[1].data() == "one\n");
  CHECK(got[1].next().stdout_bytes() == 4);
  CHECK(got[2].next().stdout_bytes() == 8);
  CHECK(got[3].end());
  CHECK(got[3].error().empty());
  CHECK_FALSE(got[3].has_next());

  read(2, true, 8);
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].next().stdout_bytes() == 8);
  agent.logs.pieces = {"three\n"};
  agent.Advance(absl::Seconds(1));
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].next().stdout_bytes() == 14);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.logs.pieces = {"four\n"};
  agent.Advance(absl::Seconds(1));
  got = chunks();
  REQUIRE(got.size() == 2);
  CHECK(got[0].data() == "four\n");
  CHECK(got[1].end());

  agent.link.queued_bytes = kMaxQueuedBytes + 1;
  agent.logs.pieces = {"five\n"};
  read(3, true);
  agent.Advance(absl::Seconds(1));
  CHECK(chunks().size() == 1);  // where it begins
  v1::ServerMessage cancel;
  cancel.mutable_cancel_log()->set_request(3);
  agent.logic->OnServerMessage(agent.Now(), cancel);
  agent.link.queued_bytes = 0;
  agent.Advance(absl::Seconds(1));
  CHECK(chunks().empty());

  agent.logs.missing = true;
  read(4, false);
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].end());
  CHECK(got[0].error() == "no output");
}

TEST_CASE("ended tasks are dropped with their logs after keep_ended, unacked ones later") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.RunTask(2);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.Event(Id(2), TaskEvent::Kind::kExited);
  for (const auto& report : SentReports(agent)) {
    if (ToTaskId(report.key()) == Id(1)) agent.Ack(report.report_id());
  }
  agent.runner.Take();
  agent.now += absl::Hours(1);
  agent.logic->Tick(agent.Now());
  CHECK(agent.runner.Take() == Calls{"remove 1-0-1"});
  REQUIRE(agent.journal.later.size() >= 1);
  CHECK(agent.journal.later.back().has_dropped());
}

}  // namespace
}  // namespace berth
