// Leaf groups, and the groups above them, from cables.
#include "clients/cli/topology/fabric.h"

#include "tests/unit/topology/world.h"

namespace berth {
namespace {

Import GroupsOf(const Fabric& fabric, bool prefix_ids = true) {
  static const Fabric* now = nullptr;
  static bool prefix = true;
  now = &fabric;
  prefix = prefix_ids;
  const TopologyFormat format{.name = "test",
                              .description = "",
                              .read = [](const ImportInput&) -> absl::StatusOr<Imported> {
                                Imported imported;
                                now->AddGroups(prefix, &imported);
                                return imported;
                              }};
  Import import;
  const auto read = ReadTopology(format, {}, "");
  REQUIRE(read.ok());
  import.warnings = read->warnings;
  import.made = *MakeHyperNodes(*read, {"import/test", ""}, {});
  return import;
}

TEST_CASE("hosts that share leaf switches are one group, and groups that share spines another") {
  Fabric fabric;
  for (const char* leaf : {"l1", "l2"}) {
    fabric.AddHost("a", leaf, 400);
    fabric.AddHost("b", leaf, 400);
  }
  fabric.AddHost("c", "l2", 200);  // at one of the rails only, and slow
  fabric.AddHost("d", "l3", 400);
  for (const char* leaf : {"l1", "l2", "l3"}) fabric.AddCable(leaf, "s1", 800);
  fabric.AddCable("s2", "l3", 800);
  CHECK(Outcome(GroupsOf(fabric)) == R"(
leaf-l1 network 1 leaf: | a b c @400
leaf-l3 network 1 leaf: | d @400
spine-s1 network 2 spine: leaf-l1 leaf-l3 @800
)");
}

// Two pods of two leaf groups each, each with a separate spine, below one core switch.
Fabric Pods() {
  Fabric fabric;
  for (const char* pod : {"1", "2"}) {
    const std::string spine = absl::StrCat("s", pod);
    for (const char* leaf : {"a", "b"}) {
      fabric.AddHost(absl::StrCat("n", pod, leaf), absl::StrCat("l", pod, leaf), 0);
      fabric.AddCable(absl::StrCat("l", pod, leaf), spine, 0);
    }
    fabric.AddCable(spine, "z", 0);
  }
  return fabric;
}

TEST_CASE("three tiers of switches") {
  CHECK(Outcome(GroupsOf(Pods(), /*prefix_ids=*/false)) == R"(
l1a network 1 leaf: | n1a
l1b network 1 leaf: | n1b
l2a network 1 leaf: | n2a
l2b network 1 leaf: | n2b
s1 network 2 spine: l1a l1b
s2 network 2 spine: l2a l2b
z network 3 core: s1 s2
)");
}

TEST_CASE("a tier of switches that joins no groups is skipped") {
  Fabric fabric;
  fabric.AddHost("a", "l1", 0);
  fabric.AddHost("b", "l2", 0);
  fabric.AddCable("l1", "s1", 0);
  fabric.AddCable("l2", "s2", 0);
  CHECK(GroupsOf(fabric).made.size() == 2);
  fabric.AddCable("s1", "z", 0);
  fabric.AddCable("s2", "z", 0);
  CHECK(Outcome(GroupsOf(fabric)) == R"(
leaf-l1 network 1 leaf: | a
leaf-l2 network 1 leaf: | b
spine-z network 2 spine: leaf-l1 leaf-l2
)");
}

TEST_CASE("a leaf switch of foreign hosts is not a spine") {
  Fabric fabric = Pods();
  for (int i = 0; i < 3; ++i) fabric.AddForeignHost("storage");
  fabric.AddForeignHost("s1");  // only one foreign host: still a spine
  fabric.AddCable("storage", "s1", 0);
  fabric.AddCable("storage", "s2", 0);
  const std::string text = Outcome(GroupsOf(fabric));
  CHECK(text.find("spine-s1 network 2 spine: leaf-l1a leaf-l1b\n") != std::string::npos);
  CHECK(text.find("core-z network 3 core: spine-s1 spine-s2\n") != std::string::npos);
}

TEST_CASE("connected switches of different groups are not a tree") {
  Fabric fabric = Pods();
  fabric.AddCable("l1a", "l1b", 0);
  fabric.SetTitle("l1a", "MF0;one");
  const Import import = GroupsOf(fabric);
  CHECK(import.warnings ==
        std::vector<std::string>{"not a tree: switches l1a (MF0;one) and l1b of different groups "
                                 "are connected to each other; no groups are built above these and "
                                 "the groups that reach them"});
  CHECK(Outcome(import) == R"(
leaf-l1a network 1 leaf: | n1a
leaf-l1b network 1 leaf: | n1b
leaf-l2a network 1 leaf: | n2a
leaf-l2b network 1 leaf: | n2b
spine-s2 network 2 spine: leaf-l2a leaf-l2b
)");
}

TEST_CASE("groups that share a switch only through a third group are not a tree") {
  Fabric fabric;
  for (const char* n : {"1", "2", "3"})
    fabric.AddHost(absl::StrCat("n", n), absl::StrCat("l", n), 0);
  fabric.AddCable("l1", "s1", 0);
  fabric.AddCable("l2", "s1", 0);
  fabric.AddCable("l2", "s2", 0);
  fabric.AddCable("l3", "s2", 0);
  const Import import = GroupsOf(fabric);
  CHECK(import.made.size() == 3);
  CHECK(import.warnings ==
        std::vector<std::string>{"not a tree: leaf-l1 and leaf-l3 share no switch, though both "
                                 "share one with others; no groups are built above these and the "
                                 "groups that reach them"});
  fabric.AddCable("l1", "s2", 0);  // s2 reaches all groups, s1 need not
  CHECK(GroupsOf(fabric).made.size() == 4);
  CHECK(GroupsOf(fabric).warnings.empty());
}

TEST_CASE("a torus of switches yields only leaf groups") {
  Fabric fabric;
  for (int i = 0; i < 9; ++i) {
    fabric.AddHost(absl::StrCat("n", i), absl::StrCat("t", i), 0);
    fabric.AddCable(absl::StrCat("t", i), absl::StrCat("t", i / 3 * 3 + (i + 1) % 3), 0);
    fabric.AddCable(absl::StrCat("t", i), absl::StrCat("t", (i + 3) % 9), 0);
  }
  const Import import = GroupsOf(fabric);
  CHECK(import.made.size() == 9);
  REQUIRE(import.warnings.size() == 1);  // one warning for all pairs of the same kind
  CHECK_THAT(import.warnings[0], Catch::StartsWith("not a tree: switches t0 and t1"));
}

TEST_CASE("of many breaks the first are reported, the others counted") {
  Fabric fabric;
  for (int i = 0; i < 10; ++i) fabric.AddHost(absl::StrCat("n", i), absl::StrCat("l", i), 0);
  for (int i = 0; i < 10; i += 2)
    fabric.AddCable(absl::StrCat("l", i), absl::StrCat("l", i + 1), 0);
  const Import import = GroupsOf(fabric);
  CHECK(import.made.size() == 10);
  REQUIRE(import.warnings.size() == 4);
  CHECK(import.warnings[3] == "not a tree: 2 more cases");
}

}  // namespace
}  // namespace berth
