// Tasks of another store, or of another incarnation of the same store. They are fenced, forgotten,
// and never mistaken for tasks of the present one.
#include <catch2/catch.hpp>

#include "clients/agent/identity.h"
#include "clients/agent/journal.h"
#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT: it is this file's vocabulary
using Kind = TaskEvent::Kind;
using Calls = std::vector<std::string>;
using v1::TaskReport;

// Registered with incarnation 5 of cluster "c". Task 1 runs. Task 2 exited with 3, which is not
// reported yet.
struct Restored {
  Restored() {
    agent.cluster = "c";
    agent.incarnation = 5;
    agent.Begin();
    agent.Welcome();
    for (const uint64_t uid : {1, 2}) {
      agent.Prepare(KeyOf(5, uid), true, false, uid == 1 ? Calls{"gpu-0"} : Calls{});
      agent.Event(IdOf(5, uid), Kind::kPrepared);
      agent.Event(IdOf(5, uid), Kind::kRunning);
    }
    agent.Event(IdOf(5, 2), Kind::kExited, 3);
    agent.runner.Take();
    agent.link.sent.clear();
  }
  // The stream breaks, and a store of that incarnation answers the next Hello.
  void MeetAgain(uint64_t incarnation, const std::string& cluster = "c") {
    agent.cluster = cluster;
    agent.incarnation = incarnation;
    agent.logic->OnDisconnected(agent.Now(), "gone");
    agent.Advance(absl::Seconds(3));
    REQUIRE_FALSE(agent.logic->registered());
    agent.link.sent.clear();
    agent.Welcome(6);
  }

  Agent agent;
};

TEST_CASE(
    "foreign: a Welcome of another incarnation fences running tasks, and only then registers") {
  Restored world;
  Agent& agent = world.agent;
  world.MeetAgain(9);
  CHECK_FALSE(agent.logic->registered());
  CHECK_FALSE(agent.link.connected);
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1.5 SIGTERM 3s KILLED"});
  agent.Advance(absl::Seconds(20));
  CHECK_FALSE(agent.link.connected);  // until then the server gets nothing with its epoch

  agent.Event(IdOf(5, 1), Kind::kExited, 143);
  agent.logic->Tick(agent.Now());
  REQUIRE(agent.link.connected);
  REQUIRE(agent.link.sent.size() == 1);
  const v1::Hello& hello = agent.link.sent[0].hello();
  CHECK(hello.tasks_size() == 0);
  CHECK(hello.knows_incarnations());
  CHECK(hello.cluster_id() == "c");
  CHECK(hello.incarnation() == 9);
  CHECK(hello.epoch() == 6);
  agent.Welcome(7);
  CHECK(agent.logic->registered());
  CHECK(SentReports(agent).empty());  // neither for the ended task nor for exit code 3
}

TEST_CASE("foreign: a new job with the same numbers runs and reports independently") {
  Restored world;
  Agent& agent = world.agent;
  world.MeetAgain(9);
  agent.Event(IdOf(5, 1), Kind::kExited, 143);
  agent.logic->Tick(agent.Now());
  agent.Welcome(7);
  agent.runner.Take();
  agent.link.sent.clear();
  for (const uint64_t uid : {1, 2}) {
    agent.Prepare(KeyOf(9, uid), true);
    agent.Event(IdOf(9, uid), Kind::kPrepared);
    agent.Event(IdOf(9, uid), Kind::kRunning);
    agent.Event(IdOf(9, uid), Kind::kExited, 40 + static_cast<int>(uid));
  }
  CHECK(agent.runner.Take() ==
        Calls{"prepare 1-0-1.9 port", "start 1-0-1.9", "prepare 2-0-1.9 port", "start 2-0-1.9"});
  std::vector<int> codes;
  for (const TaskReport& report : SentReports(agent)) {
    CHECK(report.key().incarnation() == 9);
    if (report.state() == TaskReport::EXITED) codes.push_back(report.exit_code());
  }
  CHECK(codes == std::vector<int>{41, 42});
}

TEST_CASE("foreign: messages and log requests of another incarnation are rejected") {
  Restored world;
  Agent& agent = world.agent;
  agent.Prepare(KeyOf(4, 7), true);
  agent.Kill(KeyOf(4, 1));
  agent.Start(KeyOf(4, 1));
  CHECK(agent.runner.Take().empty());
  CHECK(SentReports(agent).empty());
  agent.logs.pieces = {"another user's output"};
  v1::ServerMessage read;
  read.mutable_read_log()->set_request(3);
  *read.mutable_read_log()->mutable_key() = KeyOf(4, 2);
  agent.logic->OnServerMessage(agent.Now(), read);
  REQUIRE(agent.link.sent.size() == 1);
  CHECK(agent.link.sent[0].log().end());
  CHECK(agent.link.sent[0].log().error() ==
        "the task belongs to another incarnation of the cluster");
}

TEST_CASE("foreign: a task that does not end keeps its devices, and a new task waits for them") {
  Restored world;
  Agent& agent = world.agent;
  world.MeetAgain(9);
  agent.runner.Take();
  agent.Advance(kForeignTimeout + absl::Seconds(1));
  REQUIRE(agent.link.connected);
  agent.Welcome(7);
  REQUIRE(agent.logic->registered());
  agent.link.sent.clear();
  agent.Prepare(KeyOf(9, 1), false, true, {"gpu-0"});
  CHECK(agent.runner.Take().empty());
  CHECK(SentReports(agent).empty());  // no refusal: it would count against the node
  agent.Event(IdOf(5, 1), Kind::kExited, 137);
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1.9"});
}

TEST_CASE("foreign: the grace is the task's, but bounded, and Forget does not shorten it") {
  Restored world;
  Agent& agent = world.agent;
  v1::ServerMessage message;
  *message.mutable_prepare()->mutable_key() = KeyOf(5, 4);
  message.mutable_prepare()->set_start_at_once(true);
  message.mutable_prepare()->mutable_launch()->mutable_kill_grace()->set_seconds(3600);
  agent.logic->OnServerMessage(agent.Now(), message);
  agent.Event(IdOf(5, 4), Kind::kPrepared);
  agent.Prepare(KeyOf(5, 6));  // only prepared: returned at once
  agent.Event(IdOf(5, 6), Kind::kPrepared);
  agent.runner.Take();
  world.MeetAgain(9);
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1.5 SIGTERM 3s KILLED",
                                     "kill 4-0-1.5 SIGTERM 30s KILLED", "discard 6-0-1.5"});
}

TEST_CASE("foreign: the same store again changes nothing") {
  Restored world;
  Agent& agent = world.agent;
  world.MeetAgain(5);
  CHECK(agent.logic->registered());
  CHECK(agent.runner.Take().empty());
  REQUIRE(SentReports(agent).size() == 2);  // unacked: 1 is running, 2 exited with 3
}

TEST_CASE(
    "foreign: a restarted agent still knows which tasks are foreign, and removes them in time") {
  FakeJournal disk;
  {
    Agent before(&disk);
    before.cluster = "c";
    before.incarnation = 5;
    before.Begin();
    before.Welcome();
    for (const uint64_t uid : {1, 2}) {
      before.Prepare(KeyOf(5, uid), true, false);
      before.Event(IdOf(5, uid), Kind::kPrepared);
      before.Event(IdOf(5, uid), Kind::kRunning);
    }
    before.Event(IdOf(5, 2), Kind::kExited, 3);
    before.incarnation = 9;
    before.logic->OnDisconnected(before.Now(), "gone");
    before.Advance(absl::Seconds(3));
    before.Welcome(1);
    before.Event(IdOf(5, 1), Kind::kExited, 143);  // also flushes deferred writes
  }
  CHECK(disk.state.identity.version() == kJournalVersion);
  Agent agent(&disk);
  agent.Begin();
  REQUIRE(agent.link.sent.size() == 1);
  CHECK(agent.link.sent[0].hello().tasks_size() == 0);
  CHECK(agent.link.sent[0].hello().incarnation() == 9);
  agent.cluster = "c";
  agent.incarnation = 9;
  agent.Welcome(2);
  CHECK(agent.logic->registered());
  CHECK(agent.runner.Take().empty());
  agent.Advance(absl::Hours(1) + absl::Minutes(1));  // keep_ended
  CHECK(agent.runner.Take() == Calls{"remove 1-0-1.5", "remove 2-0-1.5"});
}

TEST_CASE("foreign: Hello names the previous node id, and the greatest job of this store") {
  Restored world;
  world.agent.node_id = 4;
  world.MeetAgain(5);
  world.agent.logic->OnDisconnected(world.agent.Now(), "gone");
  world.agent.link.sent.clear();
  world.agent.Advance(absl::Seconds(3));
  REQUIRE_FALSE(world.agent.link.sent.empty());
  CHECK(world.agent.link.sent[0].hello().node_id() == 4);
  CHECK(world.agent.link.sent[0].hello().greatest_job() == 2);  // although it has ended

  world.agent.Welcome(8);
  world.agent.Event(IdOf(5, 1), Kind::kExited, 0);  // also flushes deferred writes
  Agent again(&world.agent.own);
  again.Begin();
  CHECK(again.link.sent[0].hello().node_id() == 4);
  CHECK(again.link.sent[0].hello().epoch() == 8);
  CHECK(again.link.sent[0].hello().greatest_job() == 2);
  again.cluster = "c";
  again.incarnation = 9;
  again.Welcome(1);
  again.logic->OnDisconnected(again.Now(), "gone");
  again.link.sent.clear();
  again.Advance(absl::Seconds(3));
  CHECK(again.link.sent[0].hello().greatest_job() == 0);  // they belong to another incarnation
}

TEST_CASE("foreign: a task of a later incarnation does not supersede one of this incarnation") {
  Restored world;
  Agent& agent = world.agent;
  world.MeetAgain(3);  // for example another cluster
  agent.Event(IdOf(5, 1), Kind::kExited, 143);
  agent.logic->Tick(agent.Now());
  agent.Welcome(7);
  agent.runner.Take();
  agent.Prepare(KeyOf(3, 1));
  CHECK(agent.runner.Take() == Calls{"prepare 1-0-1.3"});
}

// A journal of the previous version: keys without incarnation, records without a cluster.
struct OldJournal {
  OldJournal() {
    for (const uint64_t uid : {1, 2}) {
      agent::v1::TaskRecord& task = disk.state.tasks[Id(uid)];
      *task.mutable_key() = ToKey(Id(uid));
      task.set_phase(uid == 1 ? agent::v1::TaskRecord::RUNNING : agent::v1::TaskRecord::ENDED);
      task.set_ended_unix_ms(1'800'000'000'000);
      task.mutable_report()->set_report_id(uid);
      task.mutable_report()->set_state(uid == 1 ? TaskReport::RUNNING : TaskReport::EXITED);
      *task.mutable_report()->mutable_key() = task.key();
    }
    disk.state.identity.set_version(1);
    disk.state.identity.set_agent_id("a");
    agent.Begin(false, absl::Seconds(200));
  }
  FakeJournal disk;
  Agent agent{&disk};
};

TEST_CASE("foreign: a journal of the previous version is adopted if the store has no incarnation") {
  OldJournal old;
  CHECK(old.agent.runner.Take() == Calls{"adopt 1-0-1"});
  const std::string cluster = GENERATE(std::string(""), std::string("c"));  // old, new server
  old.agent.cluster = cluster;
  old.agent.Welcome();
  CHECK(old.agent.logic->registered());
  CHECK(old.agent.runner.Take().empty());
  CHECK(SentReports(old.agent).size() == 2);
  old.agent.Prepare(Key(3), true);
  old.agent.Event(Id(3), Kind::kPrepared);
  CHECK(old.disk.state.identity.version() == 1);  // a downgrade is still possible
}

TEST_CASE("foreign: a journal of the previous version is foreign to a restored store") {
  OldJournal old;
  old.agent.runner.Take();
  old.agent.cluster = "c";
  old.agent.incarnation = 9;
  old.agent.Welcome();
  CHECK_FALSE(old.agent.logic->registered());
  CHECK(old.agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 0 KILLED"});
  old.agent.Event(Id(1), Kind::kExited, 143);
  old.agent.logic->Tick(old.agent.Now());
  old.agent.Welcome(8);
  CHECK(old.agent.logic->registered());
  CHECK(old.agent.runner.Take().empty());  // its output stays for keep_ended
}

// Two clusters of the previous version, or one upgraded cluster and one that was not restored. Both
// count from 1, and only their names differ.
TEST_CASE("foreign: two clusters without incarnations do not share their ids") {
  OldJournal old;
  Agent& agent = old.agent;
  agent.cluster = "c";
  agent.Welcome();
  agent.Prepare(Key(3), true, false);
  agent.Event(Id(3), Kind::kPrepared);
  agent.Event(Id(3), Kind::kRunning);
  agent.Event(Id(3), Kind::kExited, 7);
  agent.Prepare(Key(4), true, false);
  agent.Event(Id(4), Kind::kPrepared);
  agent.runner.Take();
  agent.cluster = "d";
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.Advance(absl::Seconds(3));
  agent.Welcome(1);
  CHECK_FALSE(agent.logic->registered());
  CHECK(agent.runner.Take() == Calls{"kill 4-0-1 SIGTERM 3s KILLED", "remove 3-0-1"});
  // No matter how long it takes: the other cluster may have a task of that name.
  agent.Advance(kForeignTimeout + absl::Seconds(1));
  agent.Welcome(2);
  CHECK_FALSE(agent.logic->registered());
  agent.Event(Id(4), Kind::kExited, 137);
  agent.logic->Tick(agent.Now());
  agent.Welcome(3);
  CHECK(agent.logic->registered());
  CHECK(agent.runner.Take() == Calls{"remove 4-0-1"});
  agent.link.sent.clear();
  agent.Prepare(Key(3));
  CHECK(agent.runner.Take() == Calls{"prepare 3-0-1"});
}

TEST_CASE(
    "foreign: names of tasks include their incarnation, except those of the previous version") {
  CHECK(ToString(TaskId{12, 0, 1}) == "12-0-1");
  CHECK(ToString(TaskId{12, 0, 1, 1'795'575'600'000}) == "12-0-1.1795575600000");
  const TaskId id{29'636'532'633'600, 3, 2, 1'795'575'600'000};
  CHECK(ToTaskId(ToKey(id)) == id);
  CHECK(TaskId{9, 0, 1, 1} < TaskId{1, 0, 1, 2});
  CHECK(TaskId{1, 0, 1, 2} < TaskId{1, 0, 2, 2});
}

}  // namespace
}  // namespace berth
