// Node marks make searches shorter and change nothing else.
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "core/engine/search/node_search.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::NodeShape;
using testing::TestCluster;

// Three models, two zones, some tainted.
void AddFleet(TestCluster& cluster, int nodes, Dice& dice) {
  static const char* const kModels[] = {"A100", "H100", "H200"};
  const int first = static_cast<int>(cluster.state().nodes().size());
  for (int n = first; n < first + nodes; ++n) {
    NodeShape node{.cpu = 32 + 16 * dice.Below(3), .gpus = 4};
    node.model = kModels[dice.Below(3)];
    node.labels = {{"zone", absl::StrCat("z", dice.Below(2))}};
    if (dice.Below(4) == 0) node.taints = {{"dedicated", "x"}};
    cluster.AddNode(absl::StrCat("n", n), node);
  }
}

GroupShape AnyGroup(Dice& dice) {
  GroupShape group{.cpu = 1 + dice.Below(8), .gpus = dice.Below(4)};
  if (dice.Below(2) == 0) group.models = {"H100"};
  if (dice.Below(3) == 0) group.models = {"A100", "H200"};
  if (dice.Below(3) == 0) group.match_labels = {{"zone", absl::StrCat("z", dice.Below(2))}};
  if (dice.Below(3) == 0) group.tolerations = {{"dedicated", "x"}};
  return group;
}

std::set<ShapeId> Shapes(const ClusterState& state) {
  std::set<ShapeId> shapes;
  state.interner().shapes().ForEach([&](ShapeId id, const ShapeEntry&) { shapes.insert(id); });
  return shapes;
}

int MarkedNodes(const ClusterState& state) {
  int marked = 0;
  state.nodes().ForEach([&](NodeId id, const Node&) { marked += state.free().MarksOf(id) != 0; });
  return marked;
}

// Every shape is searched for often enough to get a mark.
void CompareSearches(TestCluster& cluster, StateEditor& editor) {
  NodeSearch marked(cluster.state(), cluster.policies(), nullptr, &editor);
  for (int round = 0; round < 30; ++round) {
    for (ShapeId shape : Shapes(cluster.state())) {
      NodeSearch unmarked(cluster.state(), cluster.policies());
      uint64_t work = 0, other_work = 0;
      const std::optional<Found> found = marked.Best(shape, &work);
      const std::optional<Found> other = unmarked.Best(shape, &other_work);
      REQUIRE(found.has_value() == other.has_value());
      CHECK(work == other_work);
      if (!found.has_value()) continue;
      CHECK(found->node == other->node);
      CHECK(found->devices == other->devices);
    }
  }
}

// The same from the emptiest node: the pending jobs use the spread strategy.
void CompareSpreading(TestCluster& cluster, StateEditor& editor) {
  NodeSearch marked(cluster.state(), cluster.policies(), nullptr, &editor);
  for (int round = 0; round < 30; ++round) {
    cluster.state().jobs().ForEach([&](JobId, const Job& job) {
      if (job.pending_class == ClassId{}) return;
      NodeSearch unmarked(cluster.state(), cluster.policies());
      uint64_t work = 0, other_work = 0;
      const Seeker seeker{.job = job, .window = {}, .last = {}};
      const std::optional<Found> found = marked.Best(seeker, &work);
      const std::optional<Found> other = unmarked.Best(seeker, &other_work);
      REQUIRE(found.has_value() == other.has_value());
      CHECK(work == other_work);
      if (found.has_value()) CHECK(found->node == other->node);
    });
  }
}

TEST_CASE("a search from the emptiest node gives the same result with and without marks") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    TestCluster cluster;
    AddFleet(cluster, 40, dice);
    for (int j = 0; j < 40; ++j) {
      JobShape shape{.groups = {AnyGroup(dice)}};
      shape.strategy = Strategy::kSpread;
      cluster.Submit(absl::StrCat("j", j), shape);
      if (j == 25) cluster.Settle();
    }
    StateEditor editor(cluster.state(), EditMode::kTentative);
    CompareSpreading(cluster, editor);
    CHECK(MarkedNodes(cluster.state()) > 0);
  }
}

TEST_CASE("a search finds the same node, for the same work, with and without marks") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    TestCluster cluster;
    AddFleet(cluster, 30, dice);
    for (int j = 0; j < 40; ++j) {
      cluster.Submit(absl::StrCat("j", j), {.groups = {AnyGroup(dice)}});
      if (j == 25) cluster.Settle();
    }
    StateEditor editor(cluster.state(), EditMode::kTentative);
    CompareSearches(cluster, editor);
    CHECK(MarkedNodes(cluster.state()) > 0);
  }
}

TEST_CASE("marks follow nodes that are added, changed or removed") {
  Dice dice(7);
  TestCluster cluster;
  AddFleet(cluster, 20, dice);
  for (int j = 0; j < 20; ++j) {
    cluster.Submit(absl::StrCat("j", j), {.groups = {AnyGroup(dice)}});
  }
  {
    StateEditor editor(cluster.state(), EditMode::kTentative);
    CompareSearches(cluster, editor);
  }
  REQUIRE(MarkedNodes(cluster.state()) > 0);
  AddFleet(cluster, 10, dice);
  NodeSpec changed = testing::MakeNode("n3", {.cpu = 64, .gpus = 4, .model = "B200"});
  cluster.Must(NodeRegistered{
      .id = cluster.node_id("n3"), .spec = changed, .epoch = 2, .agent_id = "again"});
  cluster.Must(NodeSteered{.id = cluster.node_id("n4"), .cordoned = true});
  cluster.Must(NodeSteered{.id = cluster.node_id("n5"), .cordoned = true});
  cluster.Must(NodeSteered{.id = cluster.node_id("n5"), .cordoned = false});
  StateEditor editor(cluster.state(), EditMode::kTentative);
  CompareSearches(cluster, editor);
}

TEST_CASE("more shapes than marks share the marks in turn") {
  TestCluster cluster;
  for (int n = 0; n < 80; ++n) {
    cluster.AddNode(absl::StrCat("n", n), {.labels = {{"number", absl::StrCat(n)}}});
  }
  for (int n = 0; n < 80; ++n) {
    cluster.Submit(absl::StrCat("j", n),
                   {.groups = {{.match_labels = {{"number", absl::StrCat(n)}}}}});
  }
  StateEditor editor(cluster.state(), EditMode::kTentative);
  CompareSearches(cluster, editor);
  CHECK(MarkedNodes(cluster.state()) > 0);
}

TEST_CASE("marks of other policies are not reused") {
  Dice dice(3);
  TestCluster cluster;
  AddFleet(cluster, 20, dice);
  for (int j = 0; j < 20; ++j) {
    cluster.Submit(absl::StrCat("j", j), {.groups = {AnyGroup(dice)}});
  }
  StateEditor editor(cluster.state(), EditMode::kTentative);
  CompareSearches(cluster, editor);
  REQUIRE(MarkedNodes(cluster.state()) > 0);
  editor.ForgetVerdicts();
  CHECK(MarkedNodes(cluster.state()) == 0);
  CompareSearches(cluster, editor);
}

}  // namespace
}  // namespace berth
