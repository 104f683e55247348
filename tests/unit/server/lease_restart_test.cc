// Leases that outlive the server that granted them.
#include <catch2/catch.hpp>

#include "berth/store/v1/meta.pb.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

constexpr absl::Duration kLong = absl::Minutes(2);
constexpr absl::Duration kShort = absl::Seconds(5);

absl::Duration Recorded(const World& world) {
  return ReadGrantedLease(world.store).value().longest;
}

// Restarts with another lease, as if the operator had changed it.
void RestartWith(World& world, absl::Duration lease) {
  world.lease_options.lease = lease;
  world.Restart();
}

struct TwoNodes {
  World world{LoopOptions{}, LeaseOptions{.lease = kLong}};
  Agent a{&world, "n1"}, b{&world, "n2"};
  JobId job;
  Agent* dead = nullptr;
  Agent* alive = nullptr;

  // A strict task runs on the dead node, whose agent never sends anything again.
  TwoNodes() {
    a.Connect();
    b.Connect();
    job = world.Submit("one", {.cpu_millis = 5000, .kill_grace = absl::Seconds(7)});
    a.Work();
    b.Work();
    const bool on_a = world.node("n1").id == world.task(job).node;
    dead = on_a ? &a : &b;
    alive = on_a ? &b : &a;
    dead->Disconnect();
  }
  void Pass(absl::Duration by) {
    for (; by > absl::ZeroDuration(); by -= absl::Seconds(1)) {
      world.Advance(absl::Seconds(1));
      alive->Heartbeat();
      alive->Work();
    }
  }
};

TEST_CASE("lease restart: the granted lease is recorded with the registration") {
  World world(LoopOptions{}, LeaseOptions{.lease = kShort});
  CHECK(Recorded(world) == absl::ZeroDuration());
  Agent agent(&world, "n1");
  world.committer.hold = true;
  agent.Connect();
  CHECK(Recorded(world) == absl::ZeroDuration());
  CHECK(agent.link->Of(v1::ServerMessage::kWelcome).empty());
  world.committer.hold = false;
  world.committer.Release();
  CHECK(agent.link->Of(v1::ServerMessage::kWelcome).size() == 1);
  CHECK(Recorded(world) == kShort);
  const uint64_t sequence = world.store.LastSequence();
  world.Advance(absl::Minutes(1));
  agent.Connect();
  CHECK(Recorded(world) == kShort);
  CHECK(world.store.LastSequence() > sequence);
}

TEST_CASE("lease restart: a shorter lease does not shorten the leases that agents still hold") {
  TwoNodes t;
  RestartWith(t.world, kShort);
  t.alive->Connect();
  CHECK(Recorded(t.world) == kLong);
  t.Pass(kLong - absl::Seconds(3));
  CHECK(t.world.task(t.job).state == TaskState::kRunning);
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kReady);
  t.Pass(absl::Seconds(5));
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kSilent);
  CHECK(t.world.task(t.job).state == TaskState::kLost);
  t.Pass(absl::Seconds(7));  // grace 7 s and margin 5 s from the end of the lease
  CHECK(t.world.task(t.job).attempt == 1);
  t.Pass(absl::Seconds(5));
  CHECK(t.world.task(t.job).attempt == 2);
  CHECK(t.alive->Runs(t.job));
}

TEST_CASE(
    "lease restart: the server waits as long for an agent that registered but missed its Welcome") {
  TwoNodes t;
  RestartWith(t.world, kShort);
  t.alive->Connect();
  t.dead->Connect();  // the server believes that it holds a short lease from now on
  t.dead->Disconnect();
  t.Pass(kLong - absl::Seconds(3));
  CHECK(t.world.task(t.job).attempt == 1);
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kReady);
}

TEST_CASE("lease restart: once the old leases have expired the new one applies and is recorded") {
  TwoNodes t;
  RestartWith(t.world, kShort);
  t.alive->Connect();
  t.dead->Connect();
  t.Pass(absl::Seconds(1));
  t.dead->Heartbeat();
  CHECK(Recorded(t.world) == kLong);
  for (int i = 0; i < 130; ++i) {
    t.Pass(absl::Seconds(1));
    t.dead->Heartbeat();
  }
  CHECK(Recorded(t.world) == kShort);
  t.Pass(kShort + absl::Seconds(2));
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kSilent);
  RestartWith(t.world, kShort);  // the next server knows of no longer lease
  t.Pass(absl::Seconds(20));
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kLost);
}

TEST_CASE("lease restart: a longer lease is recorded before it is granted") {
  World world(LoopOptions{}, LeaseOptions{.lease = kShort});
  Agent agent(&world, "n1");
  agent.Connect();
  RestartWith(world, kLong);
  CHECK(Recorded(world) == kShort);
  world.committer.hold = true;
  agent.Connect();
  CHECK(agent.link->Of(v1::ServerMessage::kWelcome).empty());
  world.committer.hold = false;
  world.committer.Release();
  CHECK(Recorded(world) == kLong);
}

TEST_CASE("lease restart: an invalid lease record is refused") {
  for (const absl::Duration none : {absl::ZeroDuration(), -absl::Seconds(1)}) {
    CHECK(absl::IsDataLoss(DecodeLeaseRecord(EncodeLeaseRecord({none, none})).status()));
    CHECK(absl::IsDataLoss(DecodeLeaseRecord(EncodeLeaseRecord({kShort, none})).status()));
  }
  CHECK(absl::IsDataLoss(DecodeLeaseRecord("\xff").status()));
  CHECK(absl::IsDataLoss(DecodeLeaseRecord("").status()));
  CHECK(absl::IsDataLoss(DecodeLeaseRecord(EncodeLeaseRecord({kShort, kLong})).status()));
  const auto lease = DecodeLeaseRecord(EncodeLeaseRecord({kLong, absl::Milliseconds(1500)}));
  CHECK(lease.value().longest == kLong);
  CHECK(lease.value().usual == absl::Milliseconds(1500));
  store::v1::LeaseRecord old;  // of a version that recorded only the longest
  old.mutable_longest()->set_seconds(60);
  CHECK(DecodeLeaseRecord(old.SerializeAsString()).value().usual == absl::Minutes(1));
}

// Two nodes on which a gang is being prepared, according to a backup. Then the store is restored,
// and the agents have ended all their tasks.
struct RestoredNodes {
  RestoredNodes() {
    a.Connect();
    b.Connect();
    job = world.Submit("gang", {.tasks = 2, .cpu_millis = 5000});
    REQUIRE(world.task(job, 0).node != world.task(job, 1).node);
    b.Work();  // prepares its member; the backup has this state
    REQUIRE(world.task(job, 0).state != world.task(job, 1).state);
    b.journal.clear();
    b.prepared.clear();
    world.restored = true;
    world.Restart();
  }
  // The agent registers, and its heartbeat shows that it is alive.
  void ComeBack(Agent& agent) {
    agent.Connect();
    agent.Heartbeat();
    Pass();
  }
  void Pass() {
    world.Advance(world.leases->TickPeriod());
    for (int i = 0; i < 3; ++i) {
      if (b.epoch != 0) b.Work();
      if (a.epoch != 0) a.Work();
    }
  }
  bool Held() const { return world.leases->Hold().left > absl::ZeroDuration(); }

  World world{LoopOptions{}, LeaseOptions{.lease = kLong, .restore_hold = absl::Minutes(1)}};
  Agent a{&world, "n1"}, b{&world, "n2"};
  JobId job;
};

TEST_CASE("lease restart: after a restore nothing starts until all nodes of the backup are back") {
  RestoredNodes r;
  CHECK(r.world.node("n1").status.state == NodeState::kSilent);
  CHECK(r.world.node("n2").status.state == NodeState::kSilent);
  r.b.epoch = 0;  // it has not reconnected yet
  r.ComeBack(r.a);
  CHECK(r.world.node("n1").status.state == NodeState::kReady);
  const JobId later = r.world.Submit("later", {.cpu_millis = 1000});
  Agent c(&r.world, "n3");  // not in the backup
  c.Connect();
  c.Heartbeat();
  r.Pass();
  c.Work();
  CHECK(r.a.executions.empty());
  CHECK(c.executions.empty());
  CHECK(r.world.task(later).state == TaskState::kPending);
  CHECK(r.world.leases->Hold().nodes == std::vector<NodeId>{r.world.node("n2").id});

  SECTION("the last node comes back") { r.ComeBack(r.b); }
  SECTION("berthd restarts in between, and still waits for the node") {
    r.world.Restart();
    CHECK(r.Held());
    r.b.epoch = 0;
    r.ComeBack(r.a);
    c.Connect();
    c.Heartbeat();
    r.Pass();
    CHECK(r.world.task(later).state == TaskState::kPending);
    r.ComeBack(r.b);
  }
  SECTION("the last node stays away: the hold ends, but its own task waits longer") {
    r.world.Advance(absl::Minutes(1));
    r.Pass();
    CHECK_FALSE(r.Held());
    CHECK(r.world.task(later).state != TaskState::kPending);
    CHECK(r.world.node("n2").status.state == NodeState::kSilent);
    return;
  }
  CHECK_FALSE(r.Held());
  CHECK_FALSE(ReadGrantedLease(r.world.store).value().restored);
  c.Work();
  r.Pass();
  CHECK(r.world.task(later).state != TaskState::kPending);
  for (const uint32_t task : {0U, 1U}) {
    CHECK(r.world.task(r.job, task).state == TaskState::kRunning);
    CHECK(r.world.task(r.job, task).attempt == 2);  // the members bound in the backup restarted
  }
  r.world.Restart();  // an ordinary start marks no node silent and waits for none
  CHECK(r.world.node("n1").status.state == NodeState::kReady);
  CHECK_FALSE(r.Held());
}

TEST_CASE(
    "lease restart: after a restore the server waits for lost nodes, but not for deleted ones") {
  RestoredNodes r;
  r.b.epoch = 0;
  r.world.Advance(2 * kLong + absl::Minutes(1));  // the hold is over, and n2 is fenced
  r.a.Connect();
  r.a.Heartbeat();
  r.world.Advance(absl::Minutes(1));
  REQUIRE(r.world.node("n2").status.state == NodeState::kLost);
  const NodeId lost = r.world.node("n2").id;
  r.world.restored = true;  // a backup of this state is restored
  r.world.Restart();
  r.a.journal.clear();
  r.a.prepared.clear();
  r.ComeBack(r.a);
  CHECK(r.world.leases->Hold().nodes == std::vector<NodeId>{lost});
  REQUIRE(r.world.loop->Post([=](Turn& turn) { REQUIRE(turn.Emit(NodeDeleted{lost}).ok()); }).ok());
  r.world.Run();
  r.Pass();
  CHECK_FALSE(r.Held());
}

TEST_CASE("lease restart: after a restore policies that are set in the meantime also wait") {
  RestoredNodes r;
  r.b.epoch = 0;
  r.ComeBack(r.a);
  const JobId later = r.world.Submit("later", {.cpu_millis = 1000});
  r.world.loop->SetPolicies(std::make_shared<const Policies>(Policies::Default()), "");
  r.Pass();
  CHECK(r.world.task(later).state == TaskState::kPending);
  r.ComeBack(r.b);
  CHECK(r.world.task(later).state == TaskState::kRunning);
}

}  // namespace
}  // namespace berth
