// The lease of an agent during a planned stop of berthd.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::FakeJournal;
using testing::Id;
using testing::Key;

constexpr absl::Duration kUsual = absl::Seconds(15);

v1::Heartbeat LastBeat(const Agent& agent) {
  v1::Heartbeat last;
  for (const auto& message : agent.link.sent) {
    if (message.has_heartbeat()) last = message.heartbeat();
  }
  return last;
}

void AckWith(Agent& agent, uint64_t sequence, absl::Duration lease) {
  v1::ServerMessage message;
  message.mutable_heartbeat_ack()->set_sequence(sequence);
  message.mutable_heartbeat_ack()->mutable_lease()->set_seconds(absl::ToInt64Seconds(lease));
  agent.logic->OnServerMessage(agent.Now(), message);
}

TEST_CASE("lease: a longer one keeps strict tasks, and is confirmed at once") {
  Agent agent;
  agent.Register();  // at 100 s
  agent.RunTask(1);
  agent.runner.Take();
  AckWith(agent, 0, absl::Minutes(10));  // between two heartbeats
  CHECK(agent.runner.lease == absl::Seconds(700));
  CHECK(agent.runner.soon_lease <= absl::Seconds(115));  // the lease that older supervisors use
  const v1::Heartbeat confirmed = LastBeat(agent);
  CHECK(confirmed.sequence() > 0);
  CHECK(confirmed.lease().seconds() == 600);
  agent.logic->OnDisconnected(agent.Now(), "the server has stopped");
  for (int i = 0; i < 590; ++i) {
    agent.Advance(absl::Seconds(1));
    CHECK(agent.runner.soon_lease > agent.now);
    CHECK(agent.runner.soon_lease <= agent.now + kUsual);
  }
  using Calls = std::vector<std::string>;
  CHECK(agent.runner.Take() == Calls{});
  agent.Advance(absl::Seconds(12));
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 3s LEASE_LAPSED"});
}

TEST_CASE(
    "lease: the next ack without a longer one ends it, and the next heartbeat confirms that") {
  Agent agent;
  agent.Register();
  AckWith(agent, 0, absl::Minutes(10));
  const v1::Heartbeat beat = LastBeat(agent);
  agent.AckHeartbeat(beat.sequence());
  CHECK(agent.runner.lease == absl::Seconds(115));
  agent.Advance(absl::Seconds(6));
  CHECK(LastBeat(agent).acked() == beat.sequence());
  CHECK(LastBeat(agent).lease().seconds() == 15);
}

TEST_CASE("lease: a Welcome ends a longer one") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  AckWith(agent, 0, absl::Minutes(10));
  agent.logic->OnDisconnected(agent.Now(), "stopped");
  agent.Advance(absl::Seconds(60));  // several reconnects
  agent.logic->OnDisconnected(agent.Now(), "refused");
  agent.Advance(absl::Seconds(3));
  agent.link.sent.clear();
  agent.Welcome(8);
  REQUIRE(agent.logic->registered());
  CHECK(agent.runner.lease <= agent.now + kUsual);
  CHECK(agent.runner.soon_lease == agent.runner.lease);
}

TEST_CASE(
    "lease: if supervisors cannot be notified of its end, the agent does not use a new epoch") {
  Agent agent;
  agent.Register();
  AckWith(agent, 0, absl::Minutes(10));
  agent.logic->OnDisconnected(agent.Now(), "stopped");
  agent.Advance(absl::Seconds(3));
  agent.link.sent.clear();
  agent.runner.lease_fails = true;
  agent.Welcome(8);
  CHECK_FALSE(agent.logic->registered());
  CHECK(agent.runner.lease == absl::Seconds(700));
  for (const auto& message : agent.link.sent) CHECK(message.epoch() != 8);
  agent.runner.lease_fails = false;
  agent.Advance(absl::Seconds(5));
  agent.Welcome(9);
  CHECK(agent.logic->registered());
}

TEST_CASE("lease: a restarted agent keeps the remainder of a longer one") {
  FakeJournal disk;
  {
    Agent first(&disk);
    first.Register();
    first.RunTask(1);
  }
  Agent agent(&disk);
  agent.Begin(false, absl::Seconds(700));
  agent.runner.Take();
  agent.Advance(absl::Seconds(500));
  using Calls = std::vector<std::string>;
  CHECK(agent.runner.Take() == Calls{});
  agent.Advance(absl::Seconds(200));
  CHECK(agent.runner.Take() == Calls{"kill 1-0-1 SIGTERM 3s LEASE_LAPSED"});
}

}  // namespace
}  // namespace berth
