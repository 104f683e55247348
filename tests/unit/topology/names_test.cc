// Names of HyperNodes, and lists of names.
#include "clients/cli/topology/names.h"

#include "clients/cli/topology/tree.h"
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

NodeGroup Leaf(const std::string& id, const std::vector<std::string>& nodes, bool opaque = false) {
  NodeGroup group;
  group.kind = kNetworkKind;
  group.id = id;
  group.tier = 1;
  group.nodes = nodes;
  group.opaque = opaque;
  return group;
}

std::vector<std::string> Names(const std::vector<NodeGroup>& groups, const HyperNodes& present = {},
                               const std::string& prefix = "") {
  const auto names = NameGroups(groups, present, prefix);
  REQUIRE(names.ok());
  for (const std::string& name : *names) CHECK(IsDnsLabel(name));
  return *names;
}

v1::HyperNode Present(const std::string& name, int tier, const std::vector<std::string>& nodes) {
  v1::HyperNode hyper_node;
  hyper_node.set_name(name);
  hyper_node.mutable_spec()->set_tier(tier);
  for (const std::string& node : nodes) {
    auto& member = *hyper_node.mutable_spec()->add_members();
    member.set_type(v1::HyperNodeSpec::Member::NODE);
    member.set_exact(node);
  }
  return hyper_node;
}

TEST_CASE("any text becomes a DNS label") {
  CHECK(DnsLabelFrom("rack-1") == "rack-1");
  CHECK(DnsLabelFrom("a--b") == "a--b");
  CHECK(DnsLabelFrom("MF0;A09-P1-IBLEAF-01:MQM9701/U1") == "mf0-a09-p1-ibleaf-01-mqm9701-u1");
  CHECK(DnsLabelFrom("_x_") == "x");
  CHECK(DnsLabelFrom("") == "hn-811c9dc5");
  CHECK(DnsLabelFrom("\xc3\xa4\xc3\xb6") != DnsLabelFrom("\xc3\xb6\xc3\xa4"));
  const std::string lengthy(64, 'a');
  CHECK(DnsLabelFrom(lengthy) == std::string(54, 'a') + "-" + ShortHash(lengthy));
  CHECK(DnsLabelFrom(std::string(63, 'a')) == std::string(63, 'a'));
  CHECK(IsDnsName("n1.example.org"));
  CHECK(!IsDnsName("n1..org"));
  CHECK(!IsDnsName(""));
  CHECK(!IsDnsName(std::string(254, 'a')));
}

TEST_CASE("colliding names: an exact match with the source stays, others get a hash") {
  CHECK(Names({Leaf("Rack_1", {}), Leaf("rack-1", {})}) ==
        std::vector<std::string>{"rack-1-" + ShortHash("network/Rack_1"), "rack-1"});
  CHECK(Names({Leaf("RACK.1", {}), Leaf("Rack_1", {})}) ==
        std::vector<std::string>{"rack-1-" + ShortHash("network/RACK.1"),
                                 "rack-1-" + ShortHash("network/Rack_1")});
  NodeGroup domain = Leaf("rack-1", {});
  domain.kind = kNvlinkKind;
  CHECK(Names({Leaf("rack-1", {}), domain}) ==
        std::vector<std::string>{"rack-1", "rack-1-" + ShortHash("nvlink/rack-1")});
  CHECK(Names({Leaf("a", {}), Leaf("B", {})}, {}, "p-") == std::vector<std::string>{"p-a", "p-b"});
}

TEST_CASE("a named group has the name of its source, regardless of present HyperNodes") {
  CHECK(Names({Leaf("a", {"n1", "n2"})}, {Present("b", 1, {"n1", "n2"})}) ==
        std::vector<std::string>{"a"});
}

TEST_CASE("an opaque group keeps the name of the HyperNode that it overlaps most") {
  const HyperNodes present = {Present("p", 1, {"n1", "n2", "n3"}), Present("q", 1, {"n4", "n5"}),
                              Present("up", 2, {"n1", "n2", "n3"})};
  CHECK(Names({Leaf("a", {"n1", "n4", "n5"}, true), Leaf("b", {"n2", "n3"}, true),
               Leaf("c", {"n6"}, true)},
              present) == std::vector<std::string>{"q", "p", "c"});
  // Both want p: the larger part gets it, or with equal sizes the first by id.
  CHECK(Names({Leaf("a", {"n1"}, true), Leaf("b", {"n2", "n3"}, true)}, present) ==
        std::vector<std::string>{"a", "p"});
  CHECK(Names({Leaf("a", {"n1"}, true), Leaf("b", {"n2"}, true)}, present) ==
        std::vector<std::string>{"p", "b"});
  // A named group takes precedence.
  CHECK(Names({Leaf("a", {"n1", "n2"}, true), Leaf("p", {"n9"})}, present) ==
        std::vector<std::string>{"a", "p"});
  // Another group has taken its own name.
  CHECK(Names({Leaf("p", {"n7"}, true), Leaf("x", {"n1"}, true)}, present) ==
        std::vector<std::string>{"p-" + ShortHash("network/p"), "p"});
}

TEST_CASE("opaque groups of groups keep names by the children's names") {
  std::vector<NodeGroup> groups = {Leaf("a", {"n1"}, true), Leaf("b", {"n2"}, true),
                                   Leaf("z", {}, true)};
  groups[2].tier = 2;
  groups[2].children = {"a", "b"};
  v1::HyperNode above = Present("top", 2, {});
  for (const char* child : {"b", "gone"}) {
    auto& member = *above.mutable_spec()->add_members();
    member.set_type(v1::HyperNodeSpec::Member::HYPER_NODE);
    member.set_exact(child);
  }
  CHECK(Names(groups, {above}) == std::vector<std::string>{"a", "b", "top"});
}

TEST_CASE("lists of names") {
  NameLists lists;
  CHECK(*lists.Expand("a[1-2,7]b[0-1],c") ==
        std::vector<std::string>{"a1b0", "a1b1", "a2b0", "a2b1", "a7b0", "a7b1", "c"});
  CHECK(*lists.ExpandNodes("N[09-10]") == std::vector<std::string>{"n09", "n10"});
  CHECK(lists.Warning().find("2 node names have capital letters") == 0);
  for (const char* bad : {"", "a,", ",a", "a[", "a]", "a[2-1]", "a[x]", "a[1-9999999]", "a[]"}) {
    INFO(bad);
    CHECK(!lists.Expand(bad).ok());
  }
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) status = lists.Expand("a[1-100000]").status();
  CHECK(status.message() ==
        "the name lists expand to more than the 500000 names allowed in one import");
}

TEST_CASE("names are folded for people") {
  const auto folded = [](const std::vector<std::string>& names) {
    return absl::StrJoin(FoldNames(names), " ");
  };
  CHECK(folded({}) == "");
  CHECK(folded({"n2", "n1", "n10", "n9", "n3"}) == "n[1-3] n9 n10");
  CHECK(folded({"n09", "n10", "n11", "x", "x1"}) == "n[09-11] x x1");
  CHECK(folded({"a", "b", "a1b", "a2b"}) == "a a1b a2b b");
  CHECK(folded({"n12345678901234567890", "n12345678901234567891"}) ==
        "n12345678901234567890 n12345678901234567891");
}

TEST_CASE("trees have bounds") {
  Imported chain;
  for (int i = 0; i <= kMaxTiers; ++i) {
    NodeGroup& group = chain.groups.emplace_back();
    group.id = absl::StrCat("g", i);
    if (i == 0) group.nodes = {"n"};
    if (i > 0) group.children = {absl::StrCat("g", i - 1)};
  }
  CHECK(MakeTrees(&chain).message() == "\"g32\" has more than 32 tiers");
  Imported wide;
  wide.groups.emplace_back().id = "g";
  for (size_t i = 0; i <= kMaxGroupMembers; ++i)
    wide.groups[0].nodes.push_back(absl::StrCat("n", i));
  CHECK(MakeTrees(&wide).message() == "\"g\" has 10001 members, more than the 10000 allowed");
  Imported many;
  for (size_t i = 0; i <= kMaxGroups; ++i) {
    NodeGroup& group = many.groups.emplace_back();
    group.id = absl::StrCat("g", i);
    group.nodes = {absl::StrCat("n", i)};
  }
  CHECK(MakeTrees(&many).message() == "20001 groups are more than the 20000 allowed");
  Imported wrong;
  wrong.groups.resize(2);
  wrong.groups[0].id = "a";
  wrong.groups[0].children = {"b"};
  wrong.groups[0].tier = 1;
  wrong.groups[1].id = "b";
  wrong.groups[1].nodes = {"n"};
  CHECK(MakeTrees(&wrong).message() == "\"a\" has tier 1 but a child of tier 1");
}

}  // namespace
}  // namespace berth
