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

TEST_CASE("lease restart: after a restore no gang starts with members of the backup") {
  World world(LoopOptions{}, LeaseOptions{.lease = kLong});
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("gang", {.tasks = 2, .cpu_millis = 5000});
  REQUIRE(world.task(job, 0).node != world.task(job, 1).node);
  b.Work();  // its member is prepared; that is what the backup says
  REQUIRE(world.task(job, 0).state != world.task(job, 1).state);

  world.restored = true;
  world.Restart();
  CHECK(world.node("n1").status.state == NodeState::kSilent);
  CHECK(world.node("n2").status.state == NodeState::kSilent);
  CHECK_FALSE(ReadGrantedLease(world.store).value().restored);
  a.Connect();
  a.Work();
  CHECK(world.node("n1").status.state == NodeState::kReady);
  CHECK(a.executions.empty());  // n2 has not come back
  b.journal.clear();            // it ended what was of the incarnation before
  b.prepared.clear();
  b.Connect();
  for (int i = 0; i < 3; ++i) {
    b.Work();
    a.Work();
  }
  CHECK(a.executions.size() == 1);
  CHECK(b.executions.size() == 1);
  world.Restart();  // and an ordinary start silences nobody
  CHECK(world.node("n1").status.state == NodeState::kReady);
}

}  // namespace
}  // namespace berth
