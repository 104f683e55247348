// The layout of HyperNodes: depth first, by name, with ranges for everything below.
#include "core/topology/tree.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;

std::string Nodes(const Fabric& fabric, absl::Span<const NodeId> nodes) {
  return absl::StrJoin(nodes, " ", [&](std::string* out, NodeId id) {
    out->append(fabric.state().nodes().At(id).spec.name);
  });
}
std::string Name(const Fabric& fabric, const TopologyTree& tree, DomainIndex d) {
  return d == kRootDomain ? "root" : fabric.state().hyper_nodes().At(tree.At(d).id).spec.name;
}

TEST_CASE("a tree lists domains and nodes depth first, by name") {
  Fabric fabric;
  const NodeId b = fabric.AddNode("b"), a = fabric.AddNode("a");
  const NodeId loose = fabric.AddNode("zz"), x = fabric.AddNode("x"), deep = fabric.AddNode("q");
  fabric.AddDomain("rack-2", 1, "rack", {}, {x});
  fabric.AddDomain("rack-1", 1, "rack", {}, {b, a});
  fabric.AddDomain("spine", 3, "spine", {"rack-2", "rack-1"}, {deep});
  const TopologyTree tree(fabric.state(), "network");
  REQUIRE(tree.domains().size() == 4);
  CHECK(Name(fabric, tree, 1) == "spine");
  CHECK(Name(fabric, tree, 2) == "rack-1");
  CHECK(Name(fabric, tree, 3) == "rack-2");
  CHECK(Nodes(fabric, tree.nodes()) == "zz q a b x");
  CHECK(Nodes(fabric, tree.NodesBelow(1)) == "q a b x");
  CHECK(Nodes(fabric, tree.NodesOf(1)) == "q");
  CHECK(Nodes(fabric, tree.NodesBelow(2)) == "a b");
  CHECK(Nodes(fabric, tree.NodesOf(kRootDomain)) == "zz");
  CHECK(tree.tiers() == std::vector<int32_t>{1, 3});
  CHECK(tree.TierOf("rack") == 1);
  CHECK(tree.TierOf("spine") == 3);
  CHECK_FALSE(tree.TierOf("pod").has_value());
  CHECK(tree.TierName(3) == "spine");
  CHECK(tree.TierName(2) == "tier 2");
  CHECK(tree.LowestOf(loose) == kRootDomain);
  CHECK(tree.Common(2, 3) == 1);
  CHECK(tree.Common(2, 2) == 2);
  CHECK(tree.Common(1, 3) == 1);
  CHECK(tree.Common(kRootDomain, 3) == kRootDomain);
  CHECK(tree.DomainAt(a, 1) == 2);
  CHECK(tree.DomainAt(a, 2) == 2);
  CHECK(tree.DomainAt(a, 3) == 1);
  CHECK_FALSE(tree.DomainAt(deep, 2).has_value());
  CHECK_FALSE(tree.DomainAt(loose, 3).has_value());
  CHECK(tree.DomainAt(loose, 4) == kRootDomain);  // implied, one tier above the highest
  CHECK(tree.DomainAt(a, 9) == kRootDomain);
  CHECK(tree.Holds(1, a));
  CHECK_FALSE(tree.Holds(3, a));
  CHECK_FALSE(tree.Holds(1, loose));
  CHECK(tree.Find(fabric.state().FindHyperNode("rack-2")->id) == 3);
}

TEST_CASE("each kind has a separate tree over all nodes") {
  Fabric fabric;
  fabric.AddRacks(2, 2);
  fabric.AddDomain("nv", 1, "clique", {}, {fabric.node_id("r1n2"), fabric.node_id("r2n1")},
                   "nvlink");
  const TopologyTree nvlink(fabric.state(), "nvlink");
  REQUIRE(nvlink.domains().size() == 2);
  CHECK(Nodes(fabric, nvlink.nodes()) == "r1n1 r2n2 r1n2 r2n1");
  CHECK(Nodes(fabric, nvlink.NodesBelow(1)) == "r1n2 r2n1");
}

TEST_CASE("trees are rebuilt when HyperNodes or nodes change, and only then") {
  Fabric fabric;
  TopologyTrees trees;
  fabric.AddRacks(1, 2);
  CHECK(trees.Of(fabric.state(), "nvlink") == nullptr);
  const TopologyTree* tree = trees.Of(fabric.state(), "network");
  REQUIRE(tree != nullptr);
  const uint64_t version = trees.version();
  CHECK(trees.Of(fabric.state(), "network") == tree);
  fabric.Submit("j");
  fabric.Settle();
  CHECK(trees.Of(fabric.state(), "network") == tree);
  CHECK(trees.version() == version);
  fabric.AddNode("n");
  CHECK(trees.Of(fabric.state(), "network")->nodes().size() == 3);
  CHECK(trees.version() != version);
  fabric.SetHealth("r1", DomainHealth::kDegraded);
  CHECK(trees.Of(fabric.state(), "network")->any_degraded());
}

}  // namespace
}  // namespace berth
