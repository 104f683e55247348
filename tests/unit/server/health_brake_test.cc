// The bound on what the conditions of agents may cordon or drain.
#include "server/controllers/health_brake.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {
namespace {

void TellCondition(Agent& agent, const std::string& name,
                   v1::NodeCondition::Effect effect = v1::NodeCondition::DRAIN) {
  v1::AgentMessage message;
  message.set_epoch(agent.epoch);
  message.mutable_conditions();
  if (!name.empty()) {
    v1::NodeCondition& condition = *message.mutable_conditions()->add_conditions();
    condition.set_name(name);
    condition.set_effect(effect);
  }
  agent.Send(std::move(message));
  agent.world->Run();
}

// Nodes n1.. with their agents; the brake allows 3 of so few nodes.
struct BrakeNodes {
  explicit BrakeNodes(int count) {
    for (int i = 1; i <= count; ++i) {
      agents.emplace_back(&world, absl::StrCat("n", i));
      agents.back().Connect();
    }
  }
  bool Draining(int i) const { return world.node(absl::StrCat("n", i)).status.draining; }
  // In steps, with the heartbeats of all.
  void Pass(absl::Duration by) {
    for (absl::Duration done; done < by; done += absl::Seconds(5)) {
      world.Advance(absl::Seconds(5));
      for (Agent& agent : agents) agent.Heartbeat();
      world.Run();
    }
  }
  World world;
  std::deque<Agent> agents;
};

TEST_CASE(
    "agents drain at most three of few nodes within five minutes, and others wait their turn") {
  BrakeNodes nodes(5);
  for (Agent& agent : nodes.agents) TellCondition(agent, "gpu");
  CHECK((nodes.Draining(1) && nodes.Draining(2) && nodes.Draining(3)));
  CHECK_FALSE((nodes.Draining(4) || nodes.Draining(5)));
  CHECK(nodes.world.gateway->HeldConditions() == 2);
  CHECK(nodes.world.node("n4").status.reason.empty());
  // One of them recovers meanwhile.
  TellCondition(nodes.agents[4], "");
  CHECK(nodes.world.gateway->HeldConditions() == 1);
  nodes.Pass(absl::Minutes(4) + absl::Seconds(50));
  CHECK_FALSE(nodes.Draining(4));
  // Without another message about it.
  nodes.Pass(absl::Seconds(15));
  CHECK(nodes.Draining(4));
  CHECK_FALSE(nodes.Draining(5));
  CHECK(nodes.world.node("n4").status.reason == "agent: gpu: ");
  CHECK(nodes.world.gateway->HeldConditions() == 0);
}

TEST_CASE("a node counts once, and its recovery does not count") {
  BrakeNodes nodes(4);
  TellCondition(nodes.agents[0], "gpu", v1::NodeCondition::CORDON);
  TellCondition(nodes.agents[0], "gpu", v1::NodeCondition::DRAIN);
  TellCondition(nodes.agents[0], "");
  TellCondition(nodes.agents[0], "gpu");
  TellCondition(nodes.agents[1], "gpu");
  TellCondition(nodes.agents[2], "gpu");
  CHECK((nodes.Draining(1) && nodes.Draining(2) && nodes.Draining(3)));
  TellCondition(nodes.agents[3], "gpu");
  CHECK_FALSE(nodes.Draining(4));
  TellCondition(nodes.agents[2], "");  // taken back at once
  CHECK_FALSE(nodes.Draining(3));
}

TEST_CASE("operators' cordons do not count") {
  BrakeNodes nodes(4);
  for (int i = 1; i <= 3; ++i) {
    const NodeSteered event{.id = nodes.world.node(absl::StrCat("n", i)).id, .cordoned = true};
    REQUIRE(nodes.world.loop->Post([&](Turn& turn) { REQUIRE(turn.Emit(event).ok()); }).ok());
    nodes.world.Run();
  }
  TellCondition(nodes.agents[3], "gpu");
  CHECK(nodes.Draining(4));
}

TEST_CASE("what is held is forgotten with the session") {
  BrakeNodes nodes(4);
  for (Agent& agent : nodes.agents) TellCondition(agent, "gpu");
  REQUIRE(nodes.world.gateway->HeldConditions() == 1);
  nodes.agents[3].Disconnect();
  CHECK(nodes.world.gateway->HeldConditions() == 0);
}

TEST_CASE("ten per cent of many nodes may drain") {
  BrakeNodes nodes(45);
  for (Agent& agent : nodes.agents) TellCondition(agent, "gpu", v1::NodeCondition::CORDON);
  int cordoned = 0;
  for (int i = 1; i <= 45; ++i) {
    cordoned += nodes.world.node(absl::StrCat("n", i)).status.cordoned ? 1 : 0;
  }
  CHECK(cordoned == 4);
  CHECK(nodes.world.gateway->HeldConditions() == 41);
}

}  // namespace
}  // namespace berth::testing
