#include "server/controllers/conditions.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

v1::NodeConditions Conditions(
    std::initializer_list<std::pair<std::string, v1::NodeCondition::Effect>> all) {
  v1::NodeConditions conditions;
  for (const auto& [name, effect] : all) {
    v1::NodeCondition& condition = *conditions.add_conditions();
    condition.set_name(name);
    condition.set_effect(effect);
    condition.set_message("why");
  }
  return conditions;
}

// The node after the event, if there is an event.
Node After(Node node, const std::optional<NodeSteered>& event) {
  if (!event.has_value()) return node;
  node.status.cordoned = event->cordoned;
  node.status.draining = event->draining;
  node.status.reason = event->reason;
  return node;
}

TEST_CASE("the conditions of an agent cordon or taint its node, and their end undoes that") {
  Node node;
  CHECK_FALSE(SteeringFor(node, {}).has_value());
  CHECK_FALSE(SteeringFor(node, Conditions({{"clock", v1::NodeCondition::NOTE}})).has_value());
  const auto both = Conditions(
      {{"command", v1::NodeCondition::CORDON}, {"disk-space", v1::NodeCondition::DRAIN}});
  const auto drained = SteeringFor(node, both);
  REQUIRE(drained.has_value());
  CHECK(drained->cordoned);
  CHECK(drained->draining);
  CHECK(drained->reason == "agent: disk-space: why");
  node = After(node, drained);
  CHECK_FALSE(SteeringFor(node, both).has_value());  // repeated: nothing changes
  const auto cordoned = SteeringFor(node, Conditions({{"command", v1::NodeCondition::CORDON}}));
  REQUIRE(cordoned.has_value());
  CHECK(cordoned->cordoned);
  CHECK_FALSE(cordoned->draining);
  node = After(node, cordoned);
  const auto over = SteeringFor(node, {});
  REQUIRE(over.has_value());
  CHECK_FALSE(over->cordoned);
  CHECK(over->reason.empty());
}

TEST_CASE("an operator's setting takes precedence over the agent's") {
  Node node;
  node.status.cordoned = true;
  node.status.reason = "maintenance";
  const auto full = Conditions({{"disk-space", v1::NodeCondition::DRAIN}});
  CHECK_FALSE(SteeringFor(node, full).has_value());
  CHECK_FALSE(SteeringFor(node, {}).has_value());
}

TEST_CASE("a cordon for refused starts yields to the agent's, and the agent cannot remove it") {
  Node node;
  node.status.cordoned = true;
  node.status.reason = absl::StrCat(kCordonedForRefusals, "5 jobs in a row");
  CHECK_FALSE(SteeringFor(node, {}).has_value());
  const auto drained = SteeringFor(node, Conditions({{"disk-space", v1::NodeCondition::DRAIN}}));
  REQUIRE(drained.has_value());
  CHECK(drained->draining);
}

TEST_CASE("the number and length of conditions are bounded") {
  CHECK(ValidateConditions(Conditions({{"disk-space", v1::NodeCondition::DRAIN}})).ok());
  CHECK_FALSE(ValidateConditions(Conditions({{"Bad Name", v1::NodeCondition::NOTE}})).ok());
  v1::NodeConditions many;
  for (int i = 0; i < 65; ++i) many.add_conditions()->set_name("c");
  CHECK_FALSE(ValidateConditions(many).ok());
  v1::NodeConditions long_one = Conditions({{"c", v1::NodeCondition::NOTE}});
  long_one.mutable_conditions(0)->set_message(std::string(257, 'x'));
  CHECK_FALSE(ValidateConditions(long_one).ok());
}

}  // namespace
}  // namespace berth
