// Trees from labels of nodes.
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

ImportInput Labelled(const std::vector<std::vector<std::string>>& nodes,
                     const std::vector<std::string>& keys) {
  ImportInput input;
  for (const auto& node : nodes) {
    LabelledNode& one = input.nodes.emplace_back();
    one.name = node[0];
    for (size_t i = 1; i + 1 < node.size(); i += 2) one.labels[node[i]] = node[i + 1];
  }
  input.labels = keys;
  return input;
}

TEST_CASE("labels, the coarsest first: values are identified together with those above them") {
  const ImportInput input = Labelled({{"n1", "zone", "a", "x.org/rack", "R_1"},
                                      {"n2", "zone", "a", "x.org/rack", "R_1"},
                                      {"n3", "zone", "b", "x.org/rack", "R_1"},
                                      {"n4", "zone", "b"},
                                      {"n5", "x.org/rack", "R_1"},
                                      {"n6", "zone", "b", "x.org/rack", ""}},
                                     {"zone", "x.org/rack"});
  const Import import = RunImport("labels", input);
  CHECK(Outcome(import) == R"(
a-r-1 network 1 rack: | n[1-2]
b-r-1 network 1 rack: | n3
a network 2 zone: a-r-1
b network 2 zone: b-r-1
)");
  CHECK(import.warnings == std::vector<std::string>{
                               "3 of 6 nodes lack one of the labels zone, x.org/rack and are left "
                               "out: n4, n5, n6"});
  CheckRepeats("labels", input);
  CHECK(LineOf(RunImport("labels", input, {}, "z-", "racks").made[0]) ==
        "z-a-r-1 racks 1 rack: | n[1-2]");
}

TEST_CASE("one label, keys with equal last parts, and paths with equal text") {
  CHECK(Outcome(RunImport("labels", Labelled({{"n1", "rack", "7"}}, {"rack"}))) ==
        "\n7 network 1 rack: | n1\n");
  CHECK(Outcome(RunImport("labels", Labelled({{"n1", "a/rack", "x", "b/rack", "y"}},
                                             {"a/rack", "b/rack"}))) == R"(
x-y network 1 b-rack: | n1
x network 2 a-rack: x-y
)");
  CHECK(Outcome(RunImport("labels",
                          Labelled({{"n1", "a", "x-y", "b", "z"}, {"n2", "a", "x", "b", "y-z"}},
                                   {"a", "b"}))) == R"(
x-y-z-804eb529 network 1 b: | n1
x-y-z-1cbc02bd network 1 b: | n2
x network 2 a: x-y-z-1cbc02bd
x-y network 2 a: x-y-z-804eb529
)");
}

TEST_CASE("invalid labels are refused") {
  const auto error = [](const std::vector<std::string>& keys) {
    return Outcome(RunImport("labels", Labelled({{"n1", "rack", "7"}}, keys)));
  };
  CHECK(error({}) == "there is no label to group nodes by");
  CHECK(error({"kubernetes.io/hostname"}) == "there is no label to group nodes by");
  CHECK(error({"rack", "rack"}) == "label \"rack\" is empty or repeated");
  CHECK(error(std::vector<std::string>(17, "a")) == "more than 16 labels");
  CHECK(error({"zone"}) ==
        "nothing to import\n1 of 1 nodes lack one of the labels zone and are left out: n1");
}

constexpr char kKueue[] = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: default}
spec:
  levels:
  - nodeLabel: "cloud.provider.com/topology-block"
  - nodeLabel: "cloud.provider.com/topology-rack"
  - nodeLabel: "kubernetes.io/hostname"
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
)";

ImportInput KueueInput(const std::string& text) {
  constexpr char kBlock[] = "cloud.provider.com/topology-block";
  constexpr char kRack[] = "cloud.provider.com/topology-rack";
  ImportInput input = Labelled({{"n1", kBlock, "b1", kRack, "r1"},
                                {"n2", kBlock, "b1", kRack, "r2"},
                                {"n3", kBlock, "b2", kRack, "r1"},
                                {"n4", kBlock, "b2", kRack, "r1"}},
                               {});
  if (!text.empty()) input.texts.push_back({"f", text});
  return input;
}

constexpr char kKueueTold[] = R"(
b1-r1 network 1 topology-rack: | n1
b1-r2 network 1 topology-rack: | n2
b2-r1 network 1 topology-rack: | n[3-4]
b1 network 2 topology-block: b1-r1 b1-r2
b2 network 2 topology-block: b2-r1
)";

TEST_CASE("a Topology of Kueue is a list of labels") {
  CHECK(Outcome(RunImport("kueue", KueueInput(kKueue))) == kKueueTold);
  std::string second(kKueue);
  second.replace(second.find("default"), 7, "other");
  ImportInput two = KueueInput(absl::StrCat(kKueue, "---", second));
  CHECK(Outcome(RunImport("kueue", two)) ==
        "several topologies: select one with --topology: default, other");
  two.topologies = {"other"};
  CHECK(Outcome(RunImport("kueue", two)) == kKueueTold);
  two.topologies = {"ohter"};
  CHECK(Outcome(RunImport("kueue", two)) == "no topology \"ohter\"; did you mean \"other\"?");
  CHECK(Outcome(RunImport("kueue", KueueInput("kind: Topology\n"))) ==
        "no Topology of kueue.x-k8s.io in the file");
  CHECK(Outcome(RunImport("kueue", KueueInput("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\n"
                                              "metadata: {name: a}\nspec: {level: []}\n"))) ==
        "f:4:7: \"levels\" is missing");
}

TEST_CASE("a fixture of Kueue") {
  ImportInput input = KueueInput("");
  if (!ReadFixture("net-kueue/sample-gpu-queues.yaml", &input)) return;
  CHECK(Outcome(RunImport("kueue", input)) == kKueueTold);
}

constexpr char kClique[] = "nvidia.com/gpu.clique";

TEST_CASE("NVLink domains from labels keep their names when the UUID changes") {
  const ImportInput input = Labelled({{"n1", kClique, "7d1c40aa-52e0.1"},
                                      {"n2", kClique, "7d1c40aa-52e0.1"},
                                      {"n3", kClique, "7d1c40aa-52e0.2"},
                                      {"n4"},
                                      {"n5", kClique, "00000000-0000-0000-0000-000000000000.0"}},
                                     {});
  const Import import = RunImport("nvlink", input);
  CHECK(Outcome(import) == R"(
7d1c40aa-52e0-1 nvlink 1 domain: | n[1-2]
7d1c40aa-52e0-2 nvlink 1 domain: | n3
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"2 of 5 nodes are in no domain: nvidia.com/gpu.clique is not set, "
                                 "or its UUID is all zeros"});
  CheckRepeats("nvlink", input);
  const ImportInput restarted = Labelled({{"n1", kClique, "aaaa.1"},
                                          {"n2", kClique, "aaaa.1"},
                                          {"n3", kClique, "aaaa.2"},
                                          {"n4", kClique, "aaaa.2"}},
                                         {});
  CHECK(Outcome(RunImport("nvlink", restarted, import.made)) == R"(
7d1c40aa-52e0-1 nvlink 1 domain: | n[1-2]
7d1c40aa-52e0-2 nvlink 1 domain: | n[3-4]
)");
  CHECK(Outcome(RunImport("nvlink", Labelled({{"n1", "pod", "a"}}, {"pod"}))) ==
        "\na nvlink 1 domain: | n1\n");
  CHECK(Outcome(RunImport("nvlink", Labelled({{"n1"}}, {"a", "b"}))) ==
        "an NVLink domain has one label: give one --labels KEY");
}

TEST_CASE("labels that agents report: switches and NVLink domains") {
  const ImportInput input =
      Labelled({{"n1", "topology.berth/switch.0", "S1", "topology.berth/switch.1", "S2"},
                {"n2", "topology.berth/switch.0", "S2", kClique, "u.1"},
                {"n3", "topology.berth/switch", "S3", kClique, "u.1"},
                {"n4", "topology.berth/switches", "S3"}},
               {});
  const Import import = RunImport("agents", input);
  CHECK(Outcome(import) == R"(
leaf-s1 network 1 leaf: | n[1-2]
leaf-s3 network 1 leaf: | n3
u-1 nvlink 1 domain: | n[2-3]
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"1 of 4 nodes report no topology.berth/switch"});
  CheckRepeats("agents", input);
}

}  // namespace
}  // namespace berth
