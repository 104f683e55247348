// topology.conf and topology.yaml of Slurm.
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

TEST_CASE("switches of topology.conf become a tree") {
  const std::string text = R"(# three leaves
SwitchName=s0 Nodes=dev[0-1],x  LinkSpeed=400
switchname=s1 nodes="dev[08-09]"   # keys in any case
SwitchName=s2 \
    Nodes=a[1-2]b[0-1]
SwitchName=s3 Switches=s[0-2]
)";
  CHECK(Outcome(RunImport("slurm-conf", text)) == R"(
s0 network 1 leaf: | dev[0-1] x @400
s1 network 1 leaf: | dev[08-09]
s2 network 1 leaf: | a1b[0-1] a2b[0-1]
s3 network 2 spine: s0 s1 s2
)");
  CheckRepeats("slurm-conf", TextInput(text));
}

TEST_CASE("trees of uneven height, without a root, and with nodes above the leaves") {
  CHECK(Outcome(RunImport("slurm-conf",
                          "SwitchName=top Switches=mid,leafb Nodes=n9\n"
                          "SwitchName=mid Switches=leafa\n"
                          "SwitchName=leafa Nodes=n1\nSwitchName=leafb Nodes=n2\n"
                          "SwitchName=alone Nodes=n3\n")) == R"(
alone network 1 leaf: | n3
leafa network 1 leaf: | n1
leafb network 1 leaf: | n2
mid network 2 spine: leafa
top network 3 core: leafb mid | n9
)");
}

TEST_CASE("the order of lines, files and members does not matter") {
  const Import one = RunImport("slurm-conf",
                               "SwitchName=r Switches=a,b\nSwitchName=a Nodes=n1,n2\n"
                               "SwitchName=b Nodes=n3\n");
  ImportInput input = TextInput("SwitchName=b Nodes=n3\r\n");
  input.texts.push_back({"g", "SwitchName=a Nodes=n2,n1,n1\nSwitchName=r Switches=b,a"});
  CHECK(Outcome(RunImport("slurm-conf", input)) == Outcome(one));
}

TEST_CASE("blocks, and the groups that block sizes make") {
  const std::string text =
      "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockName=b3 Nodes=n[09-12]\n"
      "BlockName=b4 Nodes=n[13-16]\nBlockName=b5 Nodes=n[17-20]\nBlockSizes=4,8,16,32,64\n";
  const Import import = RunImport("slurm-conf", text);
  CHECK(Outcome(import) == R"(
b1 network 1 block: | n[01-04]
b2 network 1 block: | n[05-08]
b3 network 1 block: | n[09-12]
b4 network 1 block: | n[13-16]
b5 network 1 block: | n[17-20]
b1-x2 network 2 block-8: b1 b2
b3-x2 network 2 block-8: b3 b4
b5-x2 network 2 block-8: b5
b1-x4 network 3 block-16: b1-x2 b3-x2
b5-x4 network 3 block-16: b5-x2
b1-x8 network 4 block-32: b1-x4 b5-x4
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"block size 64 left out: all blocks are already in one of 32"});
  CheckRepeats("slurm-conf", TextInput(text));
}

TEST_CASE("the first block size is the base of the others, and alone makes no groups") {
  const std::string blocks = "BlockName=a Nodes=n[1-3]\nBlockName=b Nodes=n[4-6]\n";
  CHECK(Outcome(RunImport("slurm-conf", blocks + "BlockSizes=2,4\n")) == R"(
a network 1 block: | n[1-3]
b network 1 block: | n[4-6]
a-x2 network 2 block-4: a b
)");
  CHECK(RunImport("slurm-conf", blocks + "BlockSizes=2").made.size() == 2);
  CHECK(RunImport("slurm-conf", blocks).made.size() == 2);
}

TEST_CASE("errors in a topology.conf are reported with their place, all at once") {
  const auto error = [](const std::string& text) { return Outcome(RunImport("slurm-conf", text)); };
  CHECK(error("SwitchName=a Nodes=n1\nSwitchName=b Node=n2 nonsense\n") ==
        "f:2:22: expected KEY=VALUE");
  CHECK(error("SwitchName=a Nodes=n1\nSwitchName=b Node=n2\nSwitch=c\nRingName=r Nodes=n3") ==
        "f:2:14: unknown key \"Node\"; did you mean \"Nodes\"?\n"
        "f:3:1: unknown key \"Switch\"; known: SwitchName, BlockName, BlockSizes\n"
        "f:4:1: rings are not supported: only switches and blocks are");
  CHECK(error("Include other.conf\n") == "f:1:1: Include is not supported: give both files");
  CHECK(error("SwitchName=a Nodes=n[1-\n") == "f:1:14: name pattern \"n[1-\": \"[\" without \"]\"");
  CHECK(error("SwitchName=a Nodes=n_1\n") ==
        "f:1:14: \"n_1\" cannot be the name of a node (a DNS name)");
  CHECK(error("SwitchName=a Nodes=n1 LinkSpeed=fast\n") ==
        "f:1:23: LinkSpeed must be 0 to 1000000");
  CHECK(error("SwitchName=a Nodes=n1 Nodes=n2\n") == "f:1:23: duplicate Nodes");
  CHECK(error("SwitchName=a[1-2] Nodes=n1\n") == "f:1:1: SwitchName must be one name");
  CHECK(error("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\nBlockName=c Nodes=n3\n") ==
        "f:2:1: switches and blocks in one import: a Slurm cluster has only one of them");
  CHECK(error("BlockName=a Nodes=n1\nBlockSizes=4,12\n") ==
        "f:2:1: block size 12 must be above 4 and a power of two times 4");
  CHECK(error("BlockName=a Nodes=n1\nBlockSizes=4,x\n") == "f:2:1: \"x\" is not a block size");
  CHECK(error("BlockName=a Nodes=n1\nBlockSizes=0\n") == "f:2:1: a block size must be at least 1");
  CHECK(error("# nothing\n") == "nothing to import");
}

TEST_CASE("second parents, cycles and missing switches are reported with both places") {
  const auto error = [](const std::string& text) { return Outcome(RunImport("slurm-conf", text)); };
  CHECK(error("SwitchName=a Nodes=n1\nSwitchName=x Switches=a\nSwitchName=y Switches=a\n") ==
        "\"a\" (f:1:1) is below both \"x\" (f:2:1) and \"y\" (f:3:1)");
  CHECK(error("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n3\n") ==
        "node \"n3\" is both in \"a\" (f:1:1) and in \"b\" (f:2:1)");
  CHECK(error("SwitchName=a Switches=b Nodes=n1\nSwitchName=b Switches=c\nSwitchName=c "
              "Switches=a\n") ==
        "a cycle: \"a\" (f:1:1) is below \"c\" (f:3:1) is below \"b\" (f:2:1) is below \"a\"");
  CHECK(error("SwitchName=a Switches=a Nodes=n1\n") == "a cycle: \"a\" (f:1:1) is below \"a\"");
  CHECK(error("SwitchName=a Switches=b Nodes=n1\n") ==
        "\"a\" (f:1:1) has a child \"b\" that does not exist");
  CHECK(error("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n") ==
        "\"a\" (f:2:1) is already defined: \"a\" (f:1:1)");
}

TEST_CASE("nodes of lower levels are not repeated, and empty groups are left out") {
  const Import import = RunImport("slurm-conf",
                                  "SwitchName=r Switches=a,b Nodes=n1,n2,N3\n"
                                  "SwitchName=a Nodes=n1,n2\nSwitchName=b\n");
  CHECK(Outcome(import) == R"(
a network 1 leaf: | n[1-2]
r network 2 spine: a | n3
)");
  CHECK(import.warnings ==
        std::vector<std::string>{
            "1 node name has capital letters; nodes of Berth have none, so they are converted to "
            "lower case",
            "1 group without nodes left out: b"});
}

constexpr char kYaml[] = R"(---
- topology: topo1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - {switch: s2, nodes: "node[03-04]"}
- topology: topo2
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "node[01-02]"}
      - {block: b2, nodes: "node[03-04]"}
- topology: topo3
  flat: true
- topology: topo4
  ring: {rings: [{ring: r, nodes: "node[01-04]"}]}
)";

TEST_CASE("topology.yaml: the default topology, or the selected ones") {
  const Import import = RunImport("slurm-yaml", kYaml);
  CHECK(Outcome(import) == R"(
s1 network 1 leaf: | node[01-02]
s2 network 1 leaf: | node[03-04]
sw-root network 2 spine: s1 s2
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"topologies left out: topo2 (block), topo3 (flat), topo4 (ring)"});
  ImportInput input = TextInput(kYaml);
  input.topologies = {"topo2"};
  CHECK(Outcome(RunImport("slurm-yaml", input)) == R"(
b1 network 1 block: | node[01-02]
b2 network 1 block: | node[03-04]
b1-x2 network 2 block-4: b1 b2
)");
  CheckRepeats("slurm-yaml", input);
  input.topologies = {"topo3"};
  CHECK(Outcome(RunImport("slurm-yaml", input)) ==
        "nothing to import\n"
        "topology topo3 is flat: it has no groups\n"
        "topologies left out: topo1 (tree), topo2 (block), topo4 (ring)");
  input.topologies = {"topo4"};
  CHECK(Outcome(RunImport("slurm-yaml", input)) ==
        "f:21:9: topology topo4: ring is not supported, only tree and block are");
  input.topologies = {"topo9"};
  CHECK(Outcome(RunImport("slurm-yaml", input)).find("no topology \"topo9\"") != std::string::npos);
  input.topologies = {"topo1", "topo2"};  // both have the same nodes
  CHECK(Outcome(RunImport("slurm-yaml", input)).find("node \"node01\" is both in") !=
        std::string::npos);
}

TEST_CASE("errors in a topology.yaml are reported with their place") {
  const auto error = [](const std::string& text) { return Outcome(RunImport("slurm-yaml", text)); };
  CHECK(error("- topology: a\n  tree: {switches: [{switch: s, nodse: n1}]}\n") ==
        "f:2:33: unknown key \"nodse\"; did you mean \"nodes\"?");
  CHECK(error("- topology: a\n  tree: {switches: [{nodes: n1}]}\n") ==
        "f:2:21: \"switch\" is missing");
  CHECK(error("- topology: a\n") == "f:1:3: one of tree, block, flat, ring, torus3d is missing");
  CHECK(error("- topology: a\n  flat: true\n- topology: b\n  flat: true\n") ==
        "f:1:1: several topologies and none of them cluster_default: choose with --topology among "
        "a, b");
  CHECK(error("- {topology: a, tree: [}").find("f:1:") == 0);
  CHECK(error("- topology: a\n  block: {block_sizes: [2, 5], blocks: [{block: b, nodes: n1}]}\n") ==
        "f:2:10: block size 5 must be above 2 and a power of two times 2");
}

TEST_CASE("fixtures of Slurm") {
  ImportInput large;
  if (!ReadFixture("net-slurm/test_133_1-testcase1.topology.conf", &large)) return;
  const Import tree = RunImport("slurm-conf", large);
  REQUIRE(tree.error == "");
  std::map<int, int> tiers;
  for (const v1::HyperNode& one : tree.made) ++tiers[one.spec().tier()];
  CHECK(tiers == std::map<int, int>{{1, 500}, {2, 26}, {3, 2}, {4, 1}});
  CHECK(LineOf(tree.made[0]) == "leaf100 network 1 leaf: | peta[10000-10019]");
  CHECK(LineOf(tree.made.back()) == "root network 4 : im0 im1");
  CheckRepeats("slurm-conf", large);

  ImportInput trunks, blocks, yaml, manual;
  ReadFixture("net-slurm/test_133_1-testcase6.topology.conf", &trunks);
  CHECK(Outcome(RunImport("slurm-conf", trunks)) == R"(
leafa1 network 1 leaf: | node[1-8]
leafa2 network 1 leaf: | node9 node[10-16]
leafb1 network 1 leaf: | node[17-24]
leafb2 network 1 leaf: | node[25-32]
leafc network 1 leaf: | node[33-40]
spinea network 2 spine: leafa1 leafa2
spineb network 2 spine: leafb1 leafb2
)");
  ReadFixture("net-slurm/check-topology.conf", &blocks);
  CHECK(RunImport("slurm-conf", blocks).made.size() == 8 + 4 + 2 + 1);
  ReadFixture("net-slurm/man-topology.yaml", &yaml);
  CHECK(Outcome(RunImport("slurm-yaml", yaml)) == R"(
s1 network 1 leaf: | node[01-02]
s2 network 1 leaf: | node[03-04]
sw-root network 2 spine: s1 s2
)");
  yaml.topologies = {"topo2"};
  CHECK(RunImport("slurm-yaml", yaml).made.size() == 4 + 1);
  ReadFixture("net-slurm/man-topology.conf.txt", &manual);  // all examples of the page in one file
  CHECK(Outcome(RunImport("slurm-conf", manual)).find("rings are not supported") !=
        std::string::npos);
}

}  // namespace
}  // namespace berth
