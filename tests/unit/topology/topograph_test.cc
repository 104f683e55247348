// Models of Topograph.
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

constexpr char kModel[] = R"(# comments
switches:
  core:
    labels: {topology.kubernetes.io/region: us-east}
    switches: [sw-1, sw-2]
  sw-1:
    switches: [rack-1, rack-2, rack-3]
  sw-2:
blocks:
- switch: rack-1
  nodes: ["n[01-03]", n05]
  annotations:
    accelerator.topology.test/domain: nvl-1
    accelerator.topology.test/sub-domain: rack-1
- switch: rack-2
  nodes: ["n[11-13]"]
  labels:
    accelerator.topograph.run/domain: nvl-1
    accelerator.topograph.run/sub-domain: rack-2
- switch: alone
  nodes: n20
)";

TEST_CASE("a model of Topograph: switches, and separate domains of accelerators") {
  const Import import = RunImport("topograph", kModel);
  CHECK(Outcome(import) == R"(
alone network 1 leaf: | n20
rack-1 network 1 leaf: | n[01-03] n05
rack-2 network 1 leaf: | n[11-13]
sw-1 network 2 spine: rack-1 rack-2
core network 3 core: sw-1
nvl-1-rack-1 nvlink 1 sub-domain: | n[01-03] n05
nvl-1-rack-2 nvlink 1 sub-domain: | n[11-13]
nvl-1 nvlink 2 domain: nvl-1-rack-1 nvl-1-rack-2
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"2 groups without nodes left out: rack-3, sw-2"});
  CheckRepeats("topograph", TextInput(kModel));
  const Import other = RunImport("topograph", TextInput(kModel), {}, "t-", "fabric");
  CHECK(LineOf(other.made[0]) == "t-alone fabric 1 leaf: | n20");
  CHECK(LineOf(other.made[7]) == "t-nvl-1 nvlink 2 domain: t-nvl-1-rack-1 t-nvl-1-rack-2");
}

TEST_CASE("without sub-domains a domain is the lowest tier") {
  CHECK(Outcome(RunImport("topograph",
                          "blocks:\n- {switch: a, nodes: [n1], annotations: "
                          "{accelerator.topology.test/domain: a}}\n")) == R"(
a network 1 leaf: | n1
a-c13b60a9 nvlink 1 domain: | n1
)");
}

TEST_CASE("errors in a model are reported with their place") {
  const auto error = [](const std::string& text) { return Outcome(RunImport("topograph", text)); };
  CHECK(error("switches: {a: {switchs: [b]}}\nblocks: []\n") ==
        "f:1:16: unknown key \"switchs\"; did you mean \"switches\"?");
  CHECK(error("switches: {a: {}}\n") == "f:1:1: \"blocks\" is missing");
  CHECK(error("switches: [a]\nblocks: []\n") ==
        "f:1:11: switches: expected a map keyed by the names of switches");
  CHECK(error("blocks: [{nodes: [n1]}]\n") == "f:1:10: \"switch\" is missing");
  CHECK(error("blocks: [{switch: a, nodes: [\"n[1\"]}]\n") ==
        "f:1:30: name pattern \"n[1\": \"[\" without \"]\"");
  CHECK(
      error("switches:\n  x: {switches: [a]}\n  y: {switches: [a]}\nblocks:\n- {switch: a, nodes: "
            "[n1]}\n") == "\"a\" (f:5:3) is below both \"x\" (f:2:3) and \"y\" (f:3:3)");
  CHECK(error("switches:\n  x: {switches: [y]}\n  y: {switches: [x]}\nblocks: [{switch: a, nodes: "
              "[n1]}]\n") == "a cycle: \"x\" (f:2:3) is below \"y\" (f:3:3) is below \"x\"");
  CHECK(error("blocks:\n- {switch: a, nodes: [n1]}\n- {switch: b, nodes: [n1]}\n") ==
        "node \"n1\" is both in \"a\" (f:2:3) and in \"b\" (f:3:3)");
  CHECK(error("a: &x 1\n").find("f:1:4: anchors") == 0);
}

TEST_CASE("NMX compute nodes are NVLink domains, which keep their names when UUIDs change") {
  const std::string text =
      R"([{"Name": "node1", "DomainUUID": "3fbf-aa", "LocationInfo": {"SlotID": 5}},
          {"Name": "node2", "DomainUUID": "3fbf-aa"}, {"Name": "node3", "DomainUUID": "77"}])";
  const Import import = RunImport("topograph", text);
  CHECK(Outcome(import) == R"(
3fbf-aa nvlink 1 domain: | node[1-2]
77 nvlink 1 domain: | node3
)");
  std::string renamed = text;
  for (size_t at; (at = renamed.find("3fbf-aa")) != std::string::npos;)
    renamed.replace(at, 7, "9999-bb");
  CHECK(Outcome(RunImport("topograph", renamed, import.made)) == R"(
77 nvlink 1 domain: | node3
3fbf-aa nvlink 1 domain: | node[1-2]
)");
  CHECK(Outcome(RunImport("topograph", "[{\"Name\": \"n1\"}]")) ==
        "f:1:2: \"DomainUUID\" is missing");
}

TEST_CASE("fixtures of Topograph") {
  ImportInput medium, irregular, regular, nodes, small;
  if (!ReadFixture("net-topograph/models/medium.yaml", &medium)) return;
  CHECK(Outcome(RunImport("topograph", medium)) == R"(
sw11 network 1 leaf: | [1101-1102]
sw12 network 1 leaf: | [1201-1202]
sw13 network 1 leaf: | [1301-1302]
sw14 network 1 leaf: | [1401-1402]
sw21 network 2 spine: sw11 sw12
sw22 network 2 spine: sw13 sw14
sw3 network 3 core: sw21 sw22
nvl1 nvlink 1 domain: | [1101-1102]
nvl2 nvlink 1 domain: | [1201-1202]
nvl3 nvlink 1 domain: | [1301-1302]
nvl4 nvlink 1 domain: | [1401-1402]
)");
  ReadFixture("net-topograph/models/dual-xclr-irregular.yaml", &irregular);
  const Import import = RunImport("topograph", irregular);
  CHECK(import.made.size() == 29 + 2 + 1 + 29 + 2);
  CHECK(import.warnings ==
        std::vector<std::string>{"2 groups without nodes left out: rack-1-03, rack-1-13"});
  CHECK(LineOf(import.made[2]) ==
        "rack-1-04 network 1 leaf: | node[0028-0030] node0032 node[0034-0036]");
  ReadFixture("net-topograph/models/dual-xclr-regular.yaml", &regular);
  CHECK(RunImport("topograph", regular).made.size() == 12 + 6 + 1 + 12 + 2);
  for (const char* model : {"large", "nvl72"}) {
    ImportInput input;
    ReadFixture(absl::StrCat("net-topograph/models/", model, ".yaml"), &input);
    CHECK(RunImport("topograph", input).error == "");
    CheckRepeats("topograph", input);
  }
  ReadFixture("net-topograph/models/small-tree.yaml", &small);
  CHECK(Outcome(RunImport("topograph", small)) == R"(
s2 network 1 leaf: | i[21-22] i25
s3 network 1 leaf: | i[34-36]
s1 network 2 spine: s2 s3
nvl2 nvlink 1 domain: | i[21-22] i25
nvl3 nvlink 1 domain: | i[34-36]
)");
  ReadFixture("net-topograph/netq-computeNodes.json", &nodes);
  CHECK(Outcome(RunImport("topograph", nodes)) ==
        "\n3fbfc98b-7f95-4749-ab11-bd351a2aab3e nvlink 1 domain: | node[1-2]\n");
}

}  // namespace
}  // namespace berth
