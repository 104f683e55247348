// Longer leases while the server is stopped on purpose.
#include <catch2/catch.hpp>
#include <optional>

#include "server/controllers/maintenance.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

constexpr absl::Duration kLease = absl::Seconds(15);
constexpr absl::Duration kPause = absl::Minutes(10);
constexpr absl::Duration kGrace = absl::Seconds(7);

GrantedLease Recorded(const World& world) { return ReadGrantedLease(world.store).value(); }

void Pause(World& world, absl::Duration how_long = kPause, bool extend = false) {
  REQUIRE(world.loop
              ->Post(
                  [&](Turn& turn) {
                    world.leases->BeginPause(turn, how_long, extend,
                                             [&] { world.gateway->GrantLongerLeases(); });
                  },
                  CommandClass::kEssential)
              .ok());
  world.Run();
}

// An agent that supports longer leases: it takes what acks grant and reports what it holds.
struct KnowingAgent : Agent {
  using Agent::Agent;

  void Beat() {
    Take();
    v1::AgentMessage message;
    message.set_epoch(epoch);
    message.mutable_heartbeat()->set_sequence(++sequence);
    message.mutable_heartbeat()->set_acked(acked_beat);
    message.mutable_heartbeat()->mutable_lease()->set_seconds(absl::ToInt64Seconds(held));
    Send(message);
  }
  // Takes the acks since the last call; a new stream begins with the usual lease.
  void Take() {
    if (epoch != seen_epoch) {
      seen_epoch = epoch;
      held = kLease;
      acked_beat = 0;
    }
    const auto acks = link->Of(v1::ServerMessage::kHeartbeatAck);
    if (acks.empty()) return;
    const v1::HeartbeatAck& ack = acks.back().heartbeat_ack();
    acked_beat = ack.sequence();
    held = ack.has_lease() ? absl::Seconds(ack.lease().seconds()) : kLease;
  }
  uint64_t sequence = 0, acked_beat = 0, seen_epoch = 0;
  absl::Duration held = kLease;
};

// A strict task runs on `dead`; the other node is free for it.
struct TwoNodes {
  World world{LoopOptions{}, LeaseOptions{.lease = kLease}};
  KnowingAgent a{&world, "n1"}, b{&world, "n2"};
  JobId job;
  KnowingAgent* dead = nullptr;
  KnowingAgent* alive = nullptr;

  TwoNodes() {
    a.Connect();
    b.Connect();
    job = world.Submit("one", {.cpu_millis = 5000, .kill_grace = kGrace});
    a.Work();
    b.Work();
    const bool on_a = world.node("n1").id == world.task(job).node;
    dead = on_a ? &a : &b;
    alive = on_a ? &b : &a;
    Beats();
  }
  void Beats() {
    a.Beat();
    b.Beat();
  }
  // `both`: the dead node also sends heartbeats; otherwise it is silent.
  void Pass(absl::Duration by, bool both = false) {
    for (; by > absl::ZeroDuration(); by -= absl::Seconds(1)) {
      world.Advance(absl::Seconds(1));
      alive->Beat();
      if (both) dead->Beat();
      alive->Work();
    }
  }
};

TEST_CASE("lease pause: the longer lease is durable before any agent receives it") {
  TwoNodes t;
  t.world.committer.hold = true;
  Pause(t.world);
  CHECK(Recorded(t.world).longest == kLease);
  CHECK_FALSE(t.a.link->messages.back().heartbeat_ack().has_lease());
  t.world.committer.hold = false;
  t.world.committer.Release();
  CHECK(Recorded(t.world).longest == kPause);
  CHECK(Recorded(t.world).usual == kLease);
  // It does not wait for the next heartbeat: the server acks the last one again.
  const v1::HeartbeatAck& ack = t.a.link->messages.back().heartbeat_ack();
  CHECK(ack.sequence() == t.a.sequence);
  CHECK(ack.lease().seconds() == absl::ToInt64Seconds(kPause));
  CHECK(t.world.leases->Pause().holding == 0);
  t.Beats();
  CHECK(t.world.leases->Pause().holding == 2);
  CHECK(t.world.leases->Pause().not_holding.empty());
}

TEST_CASE(
    "lease pause: a node that dies in a pause is silent at once, and fenced after the pause") {
  TwoNodes t;
  Pause(t.world);
  t.Beats();
  t.dead->Disconnect();
  t.Pass(kLease + absl::Seconds(2));
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kSilent);
  CHECK(t.world.leases->Pause().not_holding.size() == 1);
  t.Pass(kPause - kLease - absl::Seconds(3));
  CHECK(t.world.task(t.job).attempt == 1);
  t.Pass(kGrace + absl::Seconds(8));  // includes the margin of 5 s
  CHECK(t.world.task(t.job).attempt == 2);
  CHECK(t.alive->Runs(t.job));
}

TEST_CASE("lease pause: after resume and confirmation by the agent the usual lease applies again") {
  TwoNodes t;
  Pause(t.world);
  t.Beats();
  t.world.leases->EndPause();
  CHECK(t.world.leases->Pause().left == absl::ZeroDuration());
  t.Beats();  // the agents still report the longer lease; the acks grant the usual one
  t.world.Advance(absl::Seconds(1));
  CHECK(Recorded(t.world).longest == kPause);
  t.Beats();
  t.world.Advance(absl::Seconds(1));
  CHECK(Recorded(t.world).longest == kLease);
  t.dead->Disconnect();
  t.Pass(kLease + kGrace + absl::Seconds(8));
  CHECK(t.world.task(t.job).attempt == 2);
}

TEST_CASE("lease pause: the server waits for an agent that does not report its lease") {
  TwoNodes t;
  Pause(t.world);
  t.world.leases->EndPause();
  for (int i = 0; i < 5; ++i) {
    t.alive->Beat();
    t.dead->Heartbeat();  // like an older agent
    t.world.Advance(absl::Seconds(1));
  }
  t.dead->Disconnect();
  t.Pass(kPause - absl::Seconds(10));
  CHECK(t.world.task(t.job).attempt == 1);
  CHECK(Recorded(t.world).longest == kPause);
}

TEST_CASE("lease pause: the next server waits for the longest lease that an agent may hold") {
  TwoNodes t;
  Pause(t.world);
  t.Beats();
  t.dead->Disconnect();
  t.world.Restart();
  t.alive->Connect();
  CHECK(t.world.leases->Pause().left == absl::ZeroDuration());
  t.Pass(kPause - absl::Seconds(3));
  CHECK(t.world.node(t.dead->name).status.state == NodeState::kSilent);
  CHECK(t.world.task(t.job).attempt == 1);
  CHECK(Recorded(t.world).longest == kPause);
  t.Pass(kGrace + absl::Seconds(10));
  CHECK(t.world.task(t.job).attempt == 2);
  CHECK(Recorded(t.world).longest == kLease);
}

TEST_CASE("lease pause: an agent that registers with the next server holds the usual lease") {
  TwoNodes t;
  Pause(t.world);
  t.Beats();
  t.world.Restart();
  t.alive->Connect();
  t.dead->Connect();
  SECTION("and reports it with its first heartbeat") {
    t.Pass(kLease + absl::Seconds(2), true);
    CHECK(Recorded(t.world).longest == kLease);
    t.dead->Disconnect();
    t.Pass(kLease + kGrace + absl::Seconds(8));
    CHECK(t.world.task(t.job).attempt == 2);
  }
  SECTION("unless its Welcome was lost") {
    t.dead->Disconnect();
    t.Pass(kPause - absl::Seconds(5));
    CHECK(t.world.task(t.job).attempt == 1);
    CHECK(Recorded(t.world).longest == kPause);
  }
}

TEST_CASE("lease pause: a stop does not shorten a longer pause") {
  TwoNodes t;
  Pause(t.world);
  Pause(t.world, absl::Minutes(5), true);
  CHECK(t.world.leases->Pause().left > absl::Minutes(9));
  Pause(t.world, absl::Minutes(5));
  CHECK(t.world.leases->Pause().left <= absl::Minutes(5));
}

TEST_CASE("lease pause: nodes that do not hold the longer lease are named") {
  TwoNodes t;
  Maintenance maintenance(t.world.loop.get(), t.world.leases.get(), t.world.gateway.get(), {});
  v1::ClusterPause pause;
  CHECK_FALSE(maintenance.Describe(t.world.clock.Now(), &pause));
  t.dead->Disconnect();
  Pause(t.world);
  t.alive->Beat();
  REQUIRE(maintenance.Describe(t.world.clock.Now(), &pause));
  CHECK(pause.nodes_holding() == 1);
  CHECK(pause.nodes_not_holding() == 1);
  REQUIRE(pause.not_holding_size() == 1);
  CHECK(pause.not_holding(0) == t.dead->name);
  CHECK(maintenance.Check(absl::Minutes(30)).ok());
  CHECK(absl::IsInvalidArgument(maintenance.Check(kLease)));
  CHECK(absl::IsInvalidArgument(maintenance.Check(absl::Hours(2))));
}

}  // namespace
}  // namespace berth
