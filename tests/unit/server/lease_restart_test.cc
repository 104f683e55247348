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

// Restarted with another lease, as the operator configured it meanwhile.
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

  // A strict task runs on the dead one, whose agent will not be heard of any more.
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

TEST_CASE("lease restart: what is granted is recorded with the registration") {
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

TEST_CASE("lease restart: a shorter lease does not shorten those that agents still hold") {
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
  t.Pass(absl::Seconds(7));  // grace 7 s and margin 5 s from the lease's end
  CHECK(t.world.task(t.job).attempt == 1);
  t.Pass(absl::Seconds(5));
  CHECK(t.world.task(t.job).attempt == 2);
  CHECK(t.alive->Runs(t.job));
}

TEST_CASE(
    "lease restart: an agent that registered, and missed the Welcome, is waited for as long") {
  TwoNodes t;
  RestartWith(t.world, kShort);
  t.alive->Connect();
  t.dead->Connect();  // the server believes that it holds a short lease from now on
  t.dead->Disconnect();
  t.Pass(kLong - absl::Seconds(3));
  CHECK(t.world.task(t.job).attempt == 1);
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kReady);
}

TEST_CASE("lease restart: once the old leases are over the new one counts, and is recorded") {
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
  RestartWith(t.world, kShort);  // and the next server knows of no longer ones
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

TEST_CASE("lease restart: a record that is none is refused") {
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
  store::v1::LeaseRecord old;  // of a version that knew of the longest only
  old.mutable_longest()->set_seconds(60);
  CHECK(DecodeLeaseRecord(old.SerializeAsString()).value().usual == absl::Minutes(1));
}

// Two nodes, of which a backup knows that a gang is being prepared on them; then the store is
// restored, and the agents have ended all that they had.
struct RestoredNodes {
  RestoredNodes() {
    a.Connect();
    b.Connect();
    job = world.Submit("gang", {.tasks = 2, .cpu_millis = 5000});
    REQUIRE(world.task(job, 0).node != world.task(job, 1).node);
    b.Work();  // its member is prepared; that is what the backup says
    REQUIRE(world.task(job, 0).state != world.task(job, 1).state);
    b.journal.clear();
    b.prepared.clear();
    world.restored = true;
    world.Restart();
  }
  // It registers, and shows with a heartbeat that it has gone on.
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
  r.b.epoch = 0;  // it does not hear of the new server
  r.ComeBack(r.a);
  CHECK(r.world.node("n1").status.state == NodeState::kReady);
  const JobId later = r.world.Submit("later", {.cpu_millis = 1000});
  Agent c(&r.world, "n3");  // that the backup does not know
  c.Connect();
  c.Heartbeat();
  r.Pass();
  c.Work();
  CHECK(r.a.executions.empty());
  CHECK(c.executions.empty());
  CHECK(r.world.task(later).state == TaskState::kPending);
  CHECK(r.world.leases->Hold().nodes == std::vector<NodeId>{r.world.node("n2").id});

  SECTION("the last one comes back") { r.ComeBack(r.b); }
  SECTION("berthd starts again in between, and still waits for it") {
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
  SECTION("the last one stays away: for a time, and its own task for longer") {
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
    CHECK(r.world.task(r.job, task).attempt == 2);  // what the backup had bound began anew
  }
  r.world.Restart();  // and an ordinary start silences nobody, and waits for nobody
  CHECK(r.world.node("n1").status.state == NodeState::kReady);
  CHECK_FALSE(r.Held());
}

TEST_CASE("lease restart: after a restore lost nodes are waited for, and deleted ones are not") {
  RestoredNodes r;
  r.b.epoch = 0;
  r.world.Advance(2 * kLong + absl::Minutes(1));  // the hold is over, and n2 is fenced
  r.a.Connect();
  r.a.Heartbeat();
  r.world.Advance(absl::Minutes(1));
  REQUIRE(r.world.node("n2").status.state == NodeState::kLost);
  const NodeId lost = r.world.node("n2").id;
  r.world.restored = true;  // and a backup of now is gone back to
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

TEST_CASE("lease restart: after a restore policies that are set meanwhile wait, too") {
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
