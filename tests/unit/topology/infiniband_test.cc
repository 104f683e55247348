// Dumps of ibnetdiscover, and ports of UFM.
#include <set>

#include "clients/cli/topology/host_names.h"
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

// GUID number n, as dumps write it.
std::string Guid(int n) { return absl::StrCat("0002c903000000", n < 16 ? "0" : "", absl::Hex(n)); }

// Writes a dump: the cables of each switch, then each adapter with its cable.
class Dump {
 public:
  void Switch(int guid, const std::string& name) {
    if (!switch_.empty()) absl::StrAppend(&switches_, switch_, "\n");
    switch_ = absl::StrCat("vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x", Guid(guid),
                           "\nswitchguid=0x", Guid(guid), "(", Guid(guid), ")\nSwitch\t65 \"S-",
                           Guid(guid), "\"\t\t# \"", name, "\" enhanced port 0 lid 73 lmc 0\n");
    guid_ = guid;
  }
  void Adapter(int guid, const std::string& description, const std::string& rate = "4xNDR") {
    absl::StrAppend(&switch_, "[", ++port_, "]\t\"H-", Guid(guid), "\"[1](", Guid(guid),
                    ") \t\t# \"", description, "\" lid 647 ", rate, "\n");
    absl::StrAppend(&adapters_, "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x", Guid(guid),
                    "\ncaguid=0x", Guid(guid), "\nCa\t1 \"H-", Guid(guid), "\"\t\t# \"",
                    description, "\"\n[1](", Guid(guid), ") \t\"S-", Guid(guid_), "\"[", port_,
                    "]\t\t# lid 93 lmc 0 \"a switch\" lid 119 ", rate, "\n");
  }
  void Uplink(int guid) {
    absl::StrAppend(&switch_, "[", ++port_, "]\t\"S-", Guid(guid),
                    "\"[32]\t\t# \"MF0;SPINE:MQM9701/U1\" lid 236 4xNDR\n");
  }
  std::string Text() const {
    return absl::StrCat("#\n# Topology file: generated on Wed Aug  6 16:11:23 2025\n#\n\n",
                        switches_, switch_, adapters_);
  }

 private:
  int guid_ = 0, port_ = 0;
  std::string switches_, switch_, adapters_;
};

// Four hosts at two rails in group 1 (switches 1 and 2), one of them without a name on rail 2; two
// at switch 3; a spine 9; and adapters of everything that is not a node.
Dump Fabric() {
  Dump dump;
  dump.Switch(1, "MF0;LEAF-1:MQM9701/U1");
  for (int n = 1; n <= 4; ++n) dump.Adapter(0x10 + n, absl::StrCat("Dgx-c0", n, " HCA-1"));
  dump.Adapter(0x1f, "Mellanox Technologies Aggregation Node");
  dump.Uplink(9);
  dump.Switch(2, "MF0;LEAF-2:MQM9701/U1");
  for (int n = 1; n <= 3; ++n) dump.Adapter(0x20 + n, absl::StrCat("Dgx-c0", n, " mlx5_5"));
  dump.Adapter(0x24, "MT4129 ConnectX7   Mellanox Technologies");
  dump.Uplink(9);
  dump.Switch(3, "MF0;LEAF-3:MQM9701/U1");
  dump.Adapter(0x31, "dgx-d01", "2xHDR");
  dump.Adapter(0x32, "dgx-d02 HCA-1", "2xHDR");
  dump.Adapter(0x33, "MT4129 ConnectX7   Mellanox Technologies");
  dump.Adapter(0x34, "localhost HCA-2");
  dump.Adapter(0x35, "ubuntu mlx5_0");
  dump.Adapter(0x36, "rack2-UFM-02 mlx5_1");
  dump.Uplink(9);
  dump.Switch(9, "MF0;SPINE:MQM9701/U1");
  dump.Adapter(0x9f, "Mellanox Technologies Aggregation Node");
  return dump;
}

TEST_CASE("a dump of ibnetdiscover: groups of hosts that share leaf switches") {
  const Import import = RunImport("ibnetdiscover", Fabric().Text());
  CHECK(Outcome(import) == R"(
leaf-0002c90300000001 network 1 leaf: | dgx-c[01-04] @400
leaf-0002c90300000003 network 1 leaf: | dgx-d[01-02] @100
spine-0002c90300000009 network 2 spine: leaf-0002c90300000001 leaf-0002c90300000003 @400
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"4 of 16 adapters could not be mapped to a node: their "
                                 "descriptions name no host; use --ports",
                                 "left out: 2 aggregation nodes, 1 adapter of UFM servers"});
  CheckRepeats("ibnetdiscover", TextInput(Fabric().Text()));
}

TEST_CASE("ports given by GUID take precedence over descriptions") {
  ImportInput input = TextInput(Fabric().Text());
  input.ports.push_back({"p.csv", "node,guid\n# by hand\n\ndgx-d03, 0x" + Guid(0x33) +
                                      "\nother,0002:c903:0000:0031\n"});
  const Import import = RunImport("ibnetdiscover", input);
  CHECK(LineOf(import.made[1]) ==
        "leaf-0002c90300000003 network 1 leaf: | dgx-d[02-03] other @100");
  input.ports.push_back({"q.csv", "x," + Guid(0x33) + "\n"});
  CHECK(RunImport("ibnetdiscover", input).error ==
        "q.csv:1:1: GUID " + Guid(0x33) + " belongs to both dgx-d03 and x");
  input.ports = {{"q.csv", "\nx y\nx,zz\n"}};
  CHECK(RunImport("ibnetdiscover", input).error ==
        "q.csv:2:1: expected NODE,GUID\nq.csv:3:1: expected NODE,GUID");
}

TEST_CASE("with known nodes only, a storage server joins no groups") {
  Dump dump;
  dump.Switch(1, "one");
  dump.Adapter(0x11, "n1 HCA-1");
  dump.Adapter(0x12, "nas HCA-1");
  dump.Switch(2, "two");
  dump.Adapter(0x21, "n2 HCA-1");
  dump.Adapter(0x22, "nas HCA-2");
  ImportInput input = TextInput(dump.Text());
  CHECK(RunImport("ibnetdiscover", input).made.size() == 1);
  input.known_nodes_only = true;
  input.nodes = {{"n1", {}}, {"n2", {}}};
  const Import import = RunImport("ibnetdiscover", input);
  CHECK(import.made.size() == 2);
  CHECK(import.warnings ==
        std::vector<std::string>{"left out because they are not nodes of this cluster: nas"});
}

TEST_CASE(
    "a new host does not rename its group, and neither does a new switch with a smaller GUID") {
  const Import before = RunImport("ibnetdiscover", Fabric().Text());
  Dump more;
  more.Switch(0, "MF0;LEAF-0:MQM9701/U1");  // now the smallest GUID
  for (int n = 1; n <= 5; ++n) more.Adapter(0x40 + n, absl::StrCat("Dgx-c0", n, " HCA-3"));
  const Import after = RunImport("ibnetdiscover", Fabric().Text() + more.Text(), before.made);
  CHECK(LineOf(after.made[0]) == "leaf-0002c90300000001 network 1 leaf: | dgx-c[01-05] @400");
  CHECK(after.made.size() == before.made.size());
}

TEST_CASE("when a group is split, the larger part keeps the name") {
  Dump whole, parts;
  for (Dump* dump : {&whole, &parts}) {
    dump->Switch(1, "one");
    for (int n = 1; n <= 2; ++n) dump->Adapter(0x10 + n, absl::StrCat("n", n, " HCA-1"));
    dump->Switch(2, "two");
    for (int n = dump == &whole ? 2 : 3; n <= 5; ++n)
      dump->Adapter(0x20 + n, absl::StrCat("n", n, " HCA-2"));
  }
  const Import before = RunImport("ibnetdiscover", whole.Text());
  CHECK(Outcome(before) == "\nleaf-0002c90300000001 network 1 leaf: | n[1-5] @400\n");
  const Import after = RunImport("ibnetdiscover", parts.Text(), before.made);
  CHECK(Outcome(after) == R"(
leaf-0002c90300000001-f2df1c75 network 1 leaf: | n[1-2] @400
leaf-0002c90300000001 network 1 leaf: | n[3-5] @400
)");
  const Import again = RunImport("ibnetdiscover", parts.Text(), after.made);
  CHECK(Outcome(again) == Outcome(after));
}

TEST_CASE("lines that are not of a dump are reported with their number") {
  const auto error = [](const std::string& text) {
    return Outcome(RunImport("ibnetdiscover", text));
  };
  CHECK(error("Switch 65 \"S-zz\" # \"x\"\n") == "f:1:1: not a line of ibnetdiscover output");
  CHECK(error("[1] \"H-0002c90300001101\"[1]\n") == "f:1:1: not a line of ibnetdiscover output");
  CHECK(error("#\nSwitch 65 \"S-01\" # \"x\"\n[1 \"H-02\"[1]\n[1] H-02\nhello\n") ==
        "f:3:1: not a line of ibnetdiscover output\nf:4:1: not a line of ibnetdiscover output\n"
        "f:5:1: not a line of ibnetdiscover output");
  CHECK(error("caguid=0x1\nCa\t1 \"H-01\"\t# \"n1 HCA-1\"\n") ==
        "1 adapter and no switch: was this run at a port that is not connected?");
  CHECK(error("Switch 65 \"S-01\" # \"x\"\n") == "nothing to import");
}

TEST_CASE("the owner of an adapter comes from its description") {
  const auto node = [](const char* text) { return OwnerFromDescription(text).node; };
  CHECK(node("n01.example.org HCA-6") == "n01.example.org");
  CHECK(node("'host.example.org' mlx5_bond_0") == "host.example.org");
  CHECK(node("n1") == "n1");
  for (const char* none :
       {"", "MT4129 ConnectX7   Mellanox Technologies", "MT4129", "localhost HCA-1",
        "ubuntu mlx5_0", "two words", "n_1 HCA-1", "\xff HCA-1"}) {
    INFO(none);
    CHECK(OwnerFromDescription(none).kind == AdapterOwner::Kind::kUnnamed);
  }
  CHECK(OwnerFromDescription("rack2-UFM-02 mlx5_1").kind == AdapterOwner::Kind::kManager);
  CHECK(LinkGbps("4xNDR") == 400);
  CHECK(LinkGbps("4xHDR") == 200);
  CHECK(LinkGbps("1xSDR") == 2);
  CHECK(LinkGbps("4xFDR10") == 40);
  CHECK(LinkGbps("NDR") == 0);
  CHECK(LinkGbps("") == 0);
  CHECK(GuidFrom("0xAB") == "00000000000000ab");
  CHECK(GuidFrom("00000000000000abc") == "");
}

TEST_CASE("the fabric of 582 adapters: eight leaf groups below one spine group") {
  ImportInput input;
  if (!ReadFixture("ib/topograph-ibnetdiscover-example.out", &input)) return;
  const Import import = RunImport("ibnetdiscover", input);
  REQUIRE(import.error == "");
  std::multiset<int> sizes;
  std::set<std::string> hosts;
  for (const v1::HyperNode& group : import.made) {
    CHECK(group.spec().bandwidth_gbps() == 400);
    if (group.spec().tier() != 1) continue;
    sizes.insert(group.spec().members_size());
    for (const auto& member : group.spec().members()) hosts.insert(member.exact());
  }
  CHECK(sizes == std::multiset<int>{10, 11, 14, 15, 16, 17, 18, 18});
  CHECK(hosts.size() == 119);
  CHECK(import.made.size() == 9);
  CHECK(import.made.back().spec().members_size() == 8);
  CHECK(import.made.back().name() == "spine-2c5eab0300c25f00");
  CHECK(import.warnings ==
        std::vector<std::string>{"74 of 582 adapters could not be mapped to a node: their "
                                 "descriptions name no host; use --ports",
                                 "left out: 40 aggregation nodes, 2 adapters of UFM servers"});
  CheckRepeats("ibnetdiscover", input);
  // The unnamed adapters belong to these hosts: the groups do not change.
  input.ports = {{"p.csv", "a06-p1-dgx-02-c06,e09d730300858d88\n"}};
  CHECK(RunImport("ibnetdiscover", input).made.size() == 9);

  ImportInput lone;
  ReadFixture("ib/topograph-ibnetdiscover-example-bad.out", &lone);
  CHECK(RunImport("ibnetdiscover", lone).error ==
        "1 adapter and no switch: was this run at a port that is not connected?");
}

constexpr char kPorts[] = R"([
 {"description": "Computer IB Port", "tier": 0, "system_name": "node0", "peer_node_name": "leaf1",
  "active_width": "4x", "active_speed": "HDR", "guid": "01", "capabilities": ["reset"]},
 {"description": "Computer IB Port", "system_name": "node1", "peer_node_name": "leaf1"},
 {"description": "Computer IB Port", "system_name": "node1", "peer_node_name": "leaf0"},
 {"description": "Computer IB Port", "system_name": "node2", "peer_node_name": "leaf2"},
 {"description": "Computer IB Port", "system_name": "node3", "peer_node_name": "N/A"},
 {"description": "Computer IB Port", "system_name": "ubuntu", "peer_node_name": "leaf2", "guid": "09"},
 {"description": "Computer IB Port", "system_name": "leaf2", "peer_node_name": "leaf2",
  "node_description": "Mellanox Technologies Aggregation Node"},
 {"description": "Switch IB Port", "system_name": "leaf0", "peer_node_name": "spine9", "active_speed": null},
 {"description": "Switch IB Port", "system_name": "leaf2", "peer_node_name": "spine9"},
 {"description": "Switch IB Port", "system_name": "leaf2", "peer_node_name": "node2"},
 {"description": "Switch IB Port", "system_name": "spine9", "peer_node_name": "leaf2"},
 {"description": "Gateway Port"}
])";

TEST_CASE("ports of UFM") {
  const Import import = RunImport("ufm", kPorts);
  CHECK(Outcome(import) == R"(
leaf0 network 1 leaf: | node[0-1] @200
leaf2 network 1 leaf: | node2
spine9 network 2 spine: leaf0 leaf2
)");
  CHECK(import.warnings ==
        std::vector<std::string>{"1 of 6 ports could not be mapped to a node: their descriptions "
                                 "name no host; use --ports",
                                 "left out: 1 aggregation node"});
  ImportInput input = TextInput(kPorts);
  CheckRepeats("ufm", input);
  input.ports = {{"p.csv", "node4,09\n"}};
  CHECK(LineOf(RunImport("ufm", input).made[1]) == "leaf2 network 1 leaf: | node2 node4");
  const auto error = [](const std::string& text) { return Outcome(RunImport("ufm", text)); };
  CHECK(error("{\"a\":1}") == "f:1:1: expected the list of ports of /ufmRest/resources/ports");
  CHECK(error("[{\"description\":\"Computer\"},\n{\"system_name\":\"x\"},3]") ==
        "f:1:2: \"system_name\" is missing\nf:2:1: \"description\" is missing\nf:2:21: expected a "
        "port");
  CHECK(error("[]") == "nothing to import");
}

TEST_CASE("UFM ports from Volcano's tests") {
  ImportInput input;
  if (!ReadFixture("net-volcano/ufm-ports-volcano-test.json", &input)) return;
  CHECK(Outcome(RunImport("ufm", input)) == R"(
leaf0 network 1 leaf: | node[0-3]
leaf4 network 1 leaf: | node[4-7]
)");
}

}  // namespace
}  // namespace berth
