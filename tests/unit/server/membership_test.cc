// Members of HyperNodes. tests/scenarios/topology shows the rules; here are the rest: single
// selectors, random clusters against an exhaustive rule, large numbers.
#include "server/planning/membership.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "support/random.h"

namespace berth {
namespace {

using Member = HyperNodeMember;
using Match = HyperNodeMember::Match;

std::string Refusal(Match match, const std::string& text) {
  return std::string(CheckSelector({.match = match, .text = text}).message());
}

TEST_CASE("membership: invalid selectors report the reason") {
  CHECK(Refusal(Match::kExact, "n1").empty());
  CHECK(Refusal(Match::kExact, "") == "must not be empty");
  CHECK(Refusal(Match::kRegex, "n[0-9]+").empty());
  CHECK(Refusal(Match::kRegex, "n[") == "\"n[\" is not a valid regular expression: missing ]: [");
  CHECK(Refusal(Match::kRegex, std::string(1001, 'a')) == "at most 1000 bytes, has 1001");
  CHECK(Refusal(Match::kLabel, "a=1,b=").empty());
  CHECK(Refusal(Match::kLabel, "a") == "must be KEY=VALUE, several joined by ',', is \"a\"");
  CHECK(Refusal(Match::kLabel, "a=1,=2") ==
        "must be KEY=VALUE, several joined by ',', is \"a=1,=2\"");
  CHECK(Refusal(Match::kLabel, "a=1,a=2") == "names this label twice: a");
}

NodeSpec NodeNamed(const std::string& name, std::map<std::string, std::string> labels = {}) {
  NodeSpec spec;
  spec.name = name;
  spec.labels = std::move(labels);
  return spec;
}

TEST_CASE("membership: an index finds every owner once") {
  SelectorIndex index;
  HyperNodeSpec spec;
  spec.members = {{.text = "n1"},
                  {.match = Match::kRegex, .text = "n.*"},
                  {.match = Match::kLabel, .text = "rack=1"}};
  index.Add(HyperNodeId{2}, spec);
  spec.members = {{.match = Match::kRegex, .text = "n.*"},
                  {.type = Member::Type::kHyperNode, .text = "n1"},
                  {.match = Match::kLabel, .text = "rack=1,row=2"}};
  index.Add(HyperNodeId{1}, spec);
  spec.members = {{.match = Match::kRegex, .text = "1|x"}};
  index.Add(HyperNodeId{3}, spec);
  index.Finish();
  std::vector<HyperNodeId> owners;
  const auto of = [&](const NodeSpec& node) {
    index.Match(node, &owners);
    return owners;
  };
  CHECK(of(NodeNamed("n1", {{"rack", "1"}})) == std::vector<HyperNodeId>{{1}, {2}});
  CHECK(of(NodeNamed("m", {{"rack", "1"}})) == std::vector<HyperNodeId>{{2}});
  CHECK(of(NodeNamed("m", {{"rack", "1"}, {"row", "2"}})) == std::vector<HyperNodeId>{{1}, {2}});
  CHECK(of(NodeNamed("m", {{"rack", "2"}})).empty());
  CHECK(of(NodeNamed("x")) == std::vector<HyperNodeId>{{3}});
  CHECK(of(NodeNamed("x1")).empty());  // only the whole name matches
  CHECK_FALSE(index.exact_only());
}

// A cluster of few names with random changes. After each change every node must be where the
// simplest rule puts it.
class Rule {
 public:
  explicit Rule(uint64_t seed) : random_(seed) {}

  void Step() {
    if (random_.Below(3) == 0 || state_.nodes().size() < 4) return RegisterNode();
    std::vector<HyperNodeSpec> changed;
    std::vector<std::string> deleted;
    std::set<std::string> names;
    for (uint64_t i = 0; i <= random_.Below(3); ++i) {
      const std::string name = absl::StrCat("h", random_.Below(6));
      if (!names.insert(name).second) continue;
      const HyperNode* known = state_.FindHyperNode(name);
      if (known != nullptr && random_.Below(4) == 0) {
        deleted.push_back(name);
      } else {
        changed.push_back(SomeSpec(name));
        if (known != nullptr) changed.back().kind = known->spec.kind;
      }
    }
    const absl::StatusOr<std::vector<EventBody>> events =
        membership_.Plan(state_, changed, deleted);
    if (!events.ok()) return;
    ++accepted;
    for (const EventBody& event : *events) Must(event);
  }

  void Check() {
    const absl::Status whole = CheckConsistency(state_);
    INFO(whole);
    REQUIRE(whole.ok());
    state_.nodes().ForEach([&](NodeId, const Node& node) {
      for (const char* kind : {"network", "nv"}) {
        const HyperNode* in = state_.DomainOf(node, kind);
        INFO(node.spec.name << " in kind " << kind);
        CHECK((in == nullptr ? "" : in->spec.name) == Wanted(node, kind));
      }
    });
  }

  int accepted = 0;

 private:
  void Must(const EventBody& event) {
    const absl::Status status = Apply(state_, {absl::UnixEpoch(), event});
    INFO(status);
    REQUIRE(status.ok());
  }

  void RegisterNode() {
    const std::string name = absl::StrCat("n", random_.Below(8));
    const Node* known = state_.FindNode(name);
    NodeSpec spec = NodeNamed(name, {{"rack", absl::StrCat(random_.Below(3))}});
    const NodeId id = known == nullptr ? state_.next_node_id() : known->id;
    Must(NodeRegistered{id, spec, known == nullptr ? 1 : known->status.epoch + 1, "a", "b", "v"});
    for (const EventBody& event : membership_.Follow(state_, {id})) Must(event);
  }

  HyperNodeSpec SomeSpec(const std::string& name) {
    HyperNodeSpec spec;
    spec.name = name;
    spec.kind = random_.Below(4) == 0 ? "nv" : "network";
    spec.tier = static_cast<int32_t>(1 + random_.Below(3));
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      const std::string digit = absl::StrCat(random_.Below(8));
      switch (random_.Below(4)) {
        case 0:
          spec.members.push_back({.text = "n" + digit});
          break;
        case 1:
          spec.members.push_back({.match = Match::kRegex, .text = "n[" + digit + "-7]"});
          break;
        case 2:
          spec.members.push_back(
              {.match = Match::kLabel, .text = absl::StrCat("rack=", random_.Below(3))});
          break;
        default:
          spec.members.push_back(
              {.type = Member::Type::kHyperNode, .text = absl::StrCat("h", random_.Below(6))});
      }
    }
    return spec;
  }

  static bool Claims(const HyperNodeSpec& spec, const NodeSpec& node) {
    for (const Member& member : spec.members) {
      if (member.type != Member::Type::kNode) continue;
      if (member.match == Match::kExact && member.text == node.name) return true;
      if (member.match == Match::kRegex && node.name[1] >= member.text[2]) return true;
      if (member.match == Match::kLabel &&
          member.text == absl::StrCat("rack=", node.labels.at("rack"))) {
        return true;
      }
    }
    return false;
  }

  // Of the domains that claim it, the one of the lowest tier, then the smallest name.
  std::string Wanted(const Node& node, const std::string& kind) const {
    std::optional<std::pair<int32_t, std::string>> best;
    state_.hyper_nodes().ForEach([&](HyperNodeId, const HyperNode& domain) {
      if (domain.spec.kind != kind || !Claims(domain.spec, node.spec)) return;
      const std::pair<int32_t, std::string> key(domain.spec.tier, domain.spec.name);
      if (!best.has_value() || key < *best) best = key;
    });
    return best.has_value() ? best->second : "";
  }

  Random random_;
  ClusterState state_;
  Membership membership_;
};

TEST_CASE("membership: random trees and nodes against the simplest rule") {
  int accepted = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Rule rule(seed);
    for (int step = 0; step < 60; ++step) {
      rule.Step();
      rule.Check();
    }
    accepted += rule.accepted;
  }
  CHECK(accepted > 400);
}

TEST_CASE("membership: many expressions and nodes at once") {
  ClusterState state;
  Membership membership;
  std::vector<HyperNodeSpec> racks;
  for (int r = 0; r < 500; ++r) {
    HyperNodeSpec& spec = racks.emplace_back();
    spec.name = absl::StrCat("rack-", r);
    spec.members = {{.match = Match::kRegex, .text = absl::StrCat("r", r, "-n[0-9]+")}};
  }
  const auto planned = membership.Plan(state, racks, {});
  REQUIRE(planned.ok());
  for (const EventBody& event : *planned) {
    REQUIRE(Apply(state, {absl::UnixEpoch(), event}).ok());
  }
  std::vector<NodeId> nodes;
  for (int n = 0; n < 5000; ++n) {
    const NodeId id = state.next_node_id();
    NodeRegistered event{id, NodeNamed(absl::StrCat("r", n % 500, "-n", n)), 1, "a", "b", "v"};
    REQUIRE(Apply(state, {absl::UnixEpoch(), event}).ok());
    nodes.push_back(id);
  }
  const std::vector<EventBody> events = membership.Follow(state, nodes);
  CHECK(events.size() == 500);  // one for each domain
  for (const EventBody& event : events) {
    REQUIRE(Apply(state, {absl::UnixEpoch(), event}).ok());
  }
  CHECK(state.FindHyperNode("rack-7")->nodes.size() == 10);
  CHECK(membership.Follow(state, nodes).empty());  // nothing is left to do
}

}  // namespace
}  // namespace berth
