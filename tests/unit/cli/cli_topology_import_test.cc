// `berth topology import`, as whole commands.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

constexpr char kTree[] =
    "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n3\nSwitchName=top Switches=s[0-1]\n";

v1::ListNodesResponse Nodes(const std::vector<std::string>& names) {
  v1::ListNodesResponse response;
  for (const std::string& name : names) {
    v1::Node& node = *response.add_nodes();
    node.set_name(name);
    auto& labels = *node.mutable_inventory()->mutable_labels();
    labels["rack"] = "r-" + name.substr(0, 1);
    labels["zone"] = "z";
  }
  return response;
}

void AddNode(v1::HyperNode* hyper_node, const std::string& name) {
  auto& member = *hyper_node->mutable_spec()->add_members();
  member.set_type(v1::HyperNodeSpec::Member::NODE);
  member.set_exact(name);
}

v1::HyperNode Leaf(const std::string& name, const std::string& source,
                   const std::vector<std::string>& nodes) {
  v1::HyperNode leaf;
  leaf.set_name(name);
  leaf.set_etag("e-" + name);
  leaf.mutable_spec()->set_tier(1);
  leaf.mutable_spec()->set_tier_name("leaf");
  leaf.mutable_spec()->set_kind("network");
  leaf.mutable_spec()->set_source(source);
  for (const std::string& node : nodes) AddNode(&leaf, node);
  return leaf;
}

v1::ListHyperNodesResponse Present(const std::vector<v1::HyperNode>& hyper_nodes) {
  v1::ListHyperNodesResponse response;
  for (const v1::HyperNode& one : hyper_nodes) *response.add_hyper_nodes() = one;
  return response;
}

std::vector<v1::ApplyHyperNodesRequest> Applied(Cli& cli) {
  return cli.script.Requests<v1::ApplyHyperNodesRequest>("ApplyHyperNodes");
}

TEST_CASE("topology import creates what is missing, and changes only its own source") {
  Cli cli;
  const TempFile file(kTree);
  cli.script.Answer("ListNodes", Nodes({"n1", "n2", "n3"}));
  cli.script.Answer("ListHyperNodes",
                    Present({Leaf("s0", "import/slurm-conf", {"n1", "n9"}),
                             Leaf("mine", "", {"n7"}), Leaf("old", "import/slurm-conf", {"n8"})}));
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  CHECK(cli.Run({"topology", "import", "--from", "slurm-conf", file.path()}) == 0);
  CHECK(cli.err() == "");
  CHECK(cli.out() == R"(+ s1  network tier 1 leaf, 1 node
    + node n3
+ top  network tier 2 spine, 2 hypernodes
    + hypernode s[0-1]
~ s0  network tier 1 leaf
    + node n2
    - node n9
- old  network tier 1 leaf, 1 node
import/slurm-conf: 2 to create, 1 to change, 1 to delete, 0 unchanged
)");
  REQUIRE(Applied(cli).size() == 1);
  const v1::ApplyHyperNodesRequest request = Applied(cli)[0];
  CHECK(!request.validate_only());
  CHECK(request.request_id().size() == 32);
  REQUIRE(request.hyper_nodes_size() == 3);
  CHECK(request.hyper_nodes(0).name() == "s1");
  CHECK(request.hyper_nodes(0).etag() == "");
  CHECK(request.hyper_nodes(0).spec().source() == "import/slurm-conf");
  CHECK(request.hyper_nodes(2).name() == "s0");
  CHECK(request.hyper_nodes(2).etag() == "e-s0");
  REQUIRE(request.delete_names_size() == 1);
  CHECK(request.delete_names(0) == "old");
}

TEST_CASE("a dry run asks the server to validate, and a repeated import sends nothing") {
  Cli cli;
  const TempFile file("SwitchName=s0 Nodes=n1\n");
  cli.script.Answer("ListNodes", Nodes({"n2"}));
  cli.script.Answer("ListHyperNodes", Present({}));
  cli.script.Answer("ListHyperNodes", Present({Leaf("s0", "import/hall-a", {"n1"})}));
  cli.script.Answer("ApplyHyperNodes",
                    absl::FailedPreconditionError("\"n1\" is in \"mine\" already"));
  const std::vector<std::string> line = {"topology", "import", "--from",    "slurm-conf",
                                         "--name",   "hall-a", "--dry-run", file.path()};
  CHECK(cli.Run(line) == 1);
  CHECK(cli.out() ==
        "+ s0  network tier 1 leaf, 1 node\n    + node n1\n"
        "import/hall-a: 1 to create, 0 to change, 0 to delete, 0 unchanged\n");
  CHECK(cli.err() ==
        "berth: warning: 1 of 1 nodes are unknown to the server, and join when they register: n1\n"
        "berth: \"n1\" is in \"mine\" already\n");
  REQUIRE(Applied(cli).size() == 1);
  CHECK(Applied(cli)[0].validate_only());
  CHECK(cli.Run(line) == 0);
  CHECK(cli.out() == "import/hall-a: no difference, 1 unchanged\n");
  CHECK(Applied(cli).size() == 1);
}

TEST_CASE("the difference as JSON, YAML and names") {
  Cli cli;
  const TempFile file("SwitchName=s0 Nodes=n1\nSwitchName=s1\n");
  cli.script.Answer("ListNodes", Nodes({"n1"}));
  cli.script.Answer("ListHyperNodes", Present({Leaf("old", "import/slurm-conf", {"n8"})}));
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  std::vector<std::string> line = {"topology",  "import",    "--from", "slurm-conf",
                                   file.path(), "--dry-run", "-o",     "json"};
  CHECK(cli.Run(line) == 0);
  for (const char* part :
       {"\"source\": \"import/slurm-conf\"", "\"dryRun\": true", "\"created\": [", "\"deleted\": [",
        "\"1 group without nodes left out: s1\""}) {
    INFO(cli.out());
    CHECK(cli.out().find(part) != std::string::npos);
  }
  line.back() = "yaml";
  CHECK(cli.Run(line) == 0);
  CHECK(cli.out().find("source: import/slurm-conf\ndryRun: true\ncreated:\n") == 0);
  line.back() = "name";
  CHECK(cli.Run(line) == 0);
  CHECK(cli.out() == "hypernode/s0\nhypernode/old\n");
}

TEST_CASE("names in use are refused before any request to apply") {
  Cli cli;
  const TempFile file("SwitchName=mine Nodes=n1\n");
  cli.script.Answer("ListNodes", Nodes({"n1"}));
  cli.script.Answer("ListHyperNodes", Present({Leaf("mine", "", {"n7"})}));
  CHECK(cli.Run({"topology", "import", "--from", "slurm-conf", file.path()}) == 1);
  CHECK(cli.out() == "");
  CHECK(cli.err().find("\"mine\" (created manually)") != std::string::npos);
  CHECK(Applied(cli).empty());
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  CHECK(cli.Run({"topology", "import", "--from", "slurm-conf", "--prefix", "x-", file.path()}) ==
        0);
  CHECK(Applied(cli)[0].hyper_nodes(0).name() == "x-mine");
}

TEST_CASE("labels come from all pages of the node list") {
  Cli cli;
  v1::ListNodesResponse first = Nodes({"a1", "a2"});
  first.set_next_page_token("more");
  cli.script.Answer("ListNodes", first);
  cli.script.Answer("ListNodes", Nodes({"b1"}));
  cli.script.Answer("ListHyperNodes", Present({}));
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  CHECK(cli.Run({"topology", "import", "--from", "labels", "--labels", "rack"}) == 0);
  CHECK(cli.out() ==
        "+ r-a  network tier 1 rack, 2 nodes\n    + node a[1-2]\n"
        "+ r-b  network tier 1 rack, 1 node\n    + node b1\n"
        "import/labels: 2 to create, 0 to change, 0 to delete, 0 unchanged\n");
  CHECK(cli.script.Requests<v1::ListNodesRequest>("ListNodes").size() == 2);
  CHECK(cli.Run({"topology", "import", "--from", "labels", "--labels", "zone,rack"}) == 0);
  CHECK(cli.out().find("+ z  network tier 2 zone, 1 hypernode\n    + hypernode z-r-b\n") !=
        std::string::npos);
}

TEST_CASE("options with a list or a file as value do not consume the FILE argument") {
  Cli cli;
  const TempFile tree(
      "- topology: a\n  tree: {switches: [{switch: s, nodes: n1}]}\n"
      "- topology: b\n  tree: {switches: [{switch: t, nodes: n2}]}\n");
  const TempFile ports("n9,0x2\n");
  const TempFile dump(
      "Switch 8 \"S-1\" # \"leaf\"\n[1] \"H-2\"[1](2) # \"MT1 ConnectX of M\" lid 1 4xNDR\n");
  cli.script.Answer("ListNodes", Nodes({"n1", "n2", "n9"}));
  cli.script.Answer("ListHyperNodes", Present({}));
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  CHECK(cli.Run({"topology", "import", "--from", "slurm-yaml", "--topology", "a,b", tree.path()}) ==
        0);
  CHECK(cli.out().find("2 to create") != std::string::npos);
  CHECK(cli.Run({"topology", "import", "--from", "ibnetdiscover", "--ports", ports.path(),
                 dump.path(), "--known-nodes"}) == 0);
  CHECK(cli.out().find("    + node n9\n") != std::string::npos);
}

TEST_CASE("an invalid file is reported with its line before any request") {
  Cli cli;
  const TempFile file("SwitchName=a Nodes=n1\nSwitchName=b Node=n2\n");
  const std::vector<std::string> line = {"topology", "import", "--from", "slurm-conf", file.path()};
  CHECK(cli.Run(line) == 4);
  CHECK(cli.err() ==
        "berth: " + file.path() + ":2:14: unknown key \"Node\"; did you mean \"Nodes\"?\n");
  CHECK(cli.Run({"topology", "import", "--from", "slurm-conf", "/nonexistent"}) == 4);
  CHECK(cli.err() == "berth: /nonexistent: No such file or directory\n");
  CHECK(cli.script.Requests<v1::ListNodesRequest>("ListNodes").empty());
}

TEST_CASE("options that a format does not use are refused") {
  Cli cli;
  const auto err = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"topology", "import", "--from"});
    CHECK(cli.Run(arguments) == 2);
    return cli.err();
  };
  CHECK(err({"labels", "f"}) == "berth: --from labels takes no FILE\n");
  CHECK(err({"slurm-conf"}) == "berth: --from slurm-conf needs a FILE\n");
  CHECK(err({"slurm-conf", "f", "--labels", "a"}) ==
        "berth: --from slurm-conf takes no --labels\n");
  CHECK(err({"slurm-conf", "f", "--ports", "a"}) == "berth: --from slurm-conf takes no --ports\n");
  CHECK(err({"ufm", "f", "--topology", "a"}) == "berth: --from ufm takes no --topology\n");
  CHECK(err({"agents", "--known-nodes"}) == "berth: --from agents takes no --known-nodes\n");
  CHECK(err({"slrum-conf", "f"}).find("did you mean \"slurm-conf\"?") != std::string::npos);
  CHECK(err({"ufm", "f", "--name", "A b"}).find("is not a DNS label") != std::string::npos);
  CHECK(err({"ufm", "f", "--prefix", "-"}).find("cannot begin a DNS label") != std::string::npos);
}

}  // namespace
}  // namespace berth
