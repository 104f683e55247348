// From link errors that agents report to the health of HyperNodes.
#include "server/controllers/fabric_health.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {
namespace {

// A leaf switch of nodes n1.. with their agents, and a rack of n1 alone in another tree.
struct Leaf {
  explicit Leaf(int count, DomainHealth health = DomainHealth::kOk, std::string reason = "") {
    HyperNodeSpec leaf;
    leaf.name = "leaf";
    leaf.members = {{.match = HyperNodeMember::Match::kRegex, .text = "n.*"}};
    leaf.health = health;
    leaf.health_reason = std::move(reason);
    Set(1, leaf);
    for (int i = 1; i <= count; ++i) {
      agents.emplace_back(&world, absl::StrCat("n", i));
      agents.back().Connect();
    }
    REQUIRE(world.state().FindHyperNode("leaf")->nodes.size() == static_cast<size_t>(count));
  }
  void Set(uint32_t id, const HyperNodeSpec& spec) {
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  REQUIRE(turn.Emit(HyperNodeChanged{HyperNodeId{id}, spec}).ok());
                })
                .ok());
    world.Run();
  }
  // The condition that the agent of n<i> now reports; empty: none.
  void Tell(int i, const std::string& name = "infiniband") {
    v1::AgentMessage message;
    Agent& agent = agents[static_cast<size_t>(i) - 1];
    message.set_epoch(agent.epoch);
    message.mutable_conditions();
    if (!name.empty()) message.mutable_conditions()->add_conditions()->set_name(name);
    agent.Send(std::move(message));
    world.Run();
  }
  // In steps, with the heartbeats of all.
  void Pass(absl::Duration by) {
    for (absl::Duration done; done < by; done += absl::Seconds(5)) {
      world.Advance(absl::Seconds(5));
      for (Agent& agent : agents) agent.Heartbeat();
      world.Run();
    }
  }
  const HyperNodeSpec& spec() const { return world.state().FindHyperNode("leaf")->spec; }
  bool Degraded() const { return spec().health == DomainHealth::kDegraded; }

  World world;
  std::deque<Agent> agents;
};

TEST_CASE("fabric: a switch is degraded while two nodes have link errors, and half an hour more") {
  Leaf leaf(8);
  leaf.Tell(1);
  CHECK_FALSE(leaf.Degraded());
  leaf.Pass(absl::Minutes(3));
  leaf.Tell(2);
  CHECK(leaf.Degraded());
  CHECK(leaf.spec().health_reason == "telemetry: 2 of 8 nodes have link errors: n1, n2");
  leaf.Pass(absl::Minutes(40));
  CHECK(leaf.Degraded());  // they still have
  leaf.Tell(1, "");
  leaf.Tell(2, "");
  leaf.Pass(absl::Minutes(29));
  CHECK(leaf.Degraded());
  leaf.Pass(absl::Minutes(2));
  CHECK_FALSE(leaf.Degraded());
  CHECK(leaf.spec().health_reason.empty());
}

TEST_CASE("fabric: link errors of one node, of few, or long ago, are no matter of the switch") {
  Leaf leaf(11);
  leaf.Tell(1);
  leaf.Pass(absl::Minutes(10));
  CHECK_FALSE(leaf.Degraded());
  leaf.Tell(2);  // 2 of 11 are less than a fifth
  CHECK_FALSE(leaf.Degraded());
  leaf.Tell(2, "");
  leaf.Pass(absl::Minutes(6));
  leaf.Tell(3);  // n2 had some more than five minutes ago
  CHECK_FALSE(leaf.Degraded());
  leaf.Tell(4);
  CHECK(leaf.Degraded());
}

TEST_CASE("fabric: other conditions say nothing about links") {
  Leaf leaf(2);
  leaf.Tell(1, "gpu");
  leaf.Tell(2, "disk-space");
  CHECK_FALSE(leaf.Degraded());
}

TEST_CASE("fabric: errors that come and go keep the switch degraded") {
  Leaf leaf(2);
  leaf.Tell(1);
  leaf.Tell(2);
  const uint64_t revision = leaf.world.state().FindHyperNode("leaf")->revision;
  for (int i = 0; i < 10; ++i) {
    leaf.Tell(1, "");
    leaf.Tell(2, "");
    leaf.Pass(absl::Minutes(10));
    leaf.Tell(1);
    leaf.Tell(2);
  }
  CHECK(leaf.Degraded());
  CHECK(leaf.world.state().FindHyperNode("leaf")->revision == revision);
}

TEST_CASE("fabric: an operator's mark stays") {
  Leaf leaf(2, DomainHealth::kDegraded, "cable ordered");
  leaf.Tell(1);
  leaf.Tell(2);
  CHECK(leaf.spec().health_reason == "cable ordered");
  leaf.Tell(1, "");
  leaf.Tell(2, "");
  leaf.Pass(absl::Minutes(35));
  CHECK(leaf.Degraded());
  CHECK(leaf.spec().health_reason == "cable ordered");
}

TEST_CASE("fabric: a mark of an earlier process ends when half an hour has been quiet") {
  Leaf leaf(2, DomainHealth::kDegraded, "telemetry: 2 of 2 nodes have link errors: n1, n2");
  leaf.Pass(absl::Minutes(29));
  CHECK(leaf.Degraded());
  leaf.Pass(absl::Minutes(2));
  CHECK_FALSE(leaf.Degraded());
}

TEST_CASE("fabric: a node that does not answer has no errors any more") {
  Leaf leaf(3);
  leaf.Tell(1);
  leaf.Tell(2);
  REQUIRE(leaf.Degraded());
  leaf.Tell(2, "");
  leaf.agents[0].Disconnect();
  for (int i = 0; i < 12 * 40; ++i) {
    leaf.world.Advance(absl::Seconds(5));
    for (size_t a = 1; a < leaf.agents.size(); ++a) leaf.agents[a].Heartbeat();
    leaf.world.Run();
  }
  CHECK_FALSE(leaf.Degraded());
}

}  // namespace
}  // namespace berth::testing
