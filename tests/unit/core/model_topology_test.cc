// HyperNodes as facts: the tree, its members, and what Apply rejects.
#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

using Member = HyperNodeMember;

HyperNodeSpec Domain(const std::string& name, int32_t tier,
                     const std::vector<std::string>& children = {}) {
  HyperNodeSpec spec;
  spec.name = name;
  spec.tier = tier;
  for (const std::string& child : children) {
    spec.members.push_back({.type = Member::Type::kHyperNode, .text = child});
  }
  return spec;
}

TopologyConstraint Within(TopologyMode mode, int32_t tier, const std::string& name = "",
                          const std::string& kind = kNetworkKind) {
  TopologyConstraint topology;
  topology.mode = mode;
  topology.highest_tier = tier;
  topology.highest_tier_name = name;
  topology.kind = kind;
  return topology;
}

HyperNodeId Make(World& world, const HyperNodeSpec& spec) {
  const HyperNodeId id = world.state.next_hyper_node_id();
  const absl::Status status = world.Try(HyperNodeChanged{id, spec});
  INFO(status);
  REQUIRE(status.ok());
  return id;
}

void CheckWhole(const World& world) {
  const absl::Status status = CheckConsistency(world.state);
  INFO(status);
  CHECK(status.ok());
  CHECK(Fingerprint(Reload(world.state)) == Fingerprint(world.state));
}

TEST_CASE("HyperNodes are linked by name, in any order of creation", "[model]") {
  World world;
  const HyperNodeId spine = Make(world, Domain("spine", 2, {"rack-b", "rack-a"}));
  const HyperNodeId b = Make(world, Domain("rack-b", 1));
  CHECK(world.state.hyper_nodes().At(b).parent == spine);
  const HyperNodeId a = Make(world, Domain("rack-a", 1));
  CHECK(world.state.hyper_nodes().At(spine).children == std::vector<HyperNodeId>{a, b});  // by name
  CHECK(world.state.ClaimantOf("rack-a") == spine);
  CHECK(world.state.FindHyperNode("rack-a")->id == a);
  CheckWhole(world);

  REQUIRE(world.Try(HyperNodeChanged{spine, Domain("spine", 2, {"rack-a"})}).ok());
  CHECK(world.state.hyper_nodes().At(b).parent == HyperNodeId{});
  REQUIRE(world.Try(HyperNodeDeleted{spine}).ok());
  CHECK(world.state.hyper_nodes().At(a).parent == HyperNodeId{});
  CHECK(world.state.next_hyper_node_id() == HyperNodeId{4});  // never reused
  CheckWhole(world);
}

TEST_CASE("a node is in at most one HyperNode of a kind", "[model]") {
  World world;
  const NodeId n1 = world.AddNode("n1", 1), n2 = world.AddNode("n2", 1);
  const HyperNodeId a = Make(world, Domain("a", 1)), b = Make(world, Domain("b", 1));
  HyperNodeSpec other = Domain("nvl", 1);
  other.kind = "nvlink";
  const HyperNodeId nvl = Make(world, other);
  REQUIRE(world.Try(NodesJoined{b, {n1, n2}}).ok());
  REQUIRE(world.Try(NodesJoined{nvl, {n2}}).ok());
  REQUIRE(world.Try(NodesJoined{a, {n2}}).ok());  // and leaves b
  CHECK(world.state.hyper_nodes().At(b).nodes == std::vector<NodeId>{n1});
  CHECK(world.node(n2).domains == absl::InlinedVector<HyperNodeId, 1>{a, nvl});
  CHECK(world.state.DomainOf(world.node(n2), "nvlink")->id == nvl);
  CHECK(world.state.DomainOf(world.node(n1), "nvlink") == nullptr);
  CheckWhole(world);

  REQUIRE(world.Try(NodesLeft{nvl, {n2}}).ok());
  REQUIRE(world.Try(HyperNodeDeleted{a}).ok());
  CHECK(world.node(n2).domains.empty());
  REQUIRE(world.Try(NodeSilenced{n1}).ok());
  REQUIRE(world.Try(NodeDeleted{n1}).ok());
  CHECK(world.state.hyper_nodes().At(b).nodes.empty());
  CheckWhole(world);
}

TEST_CASE("version numbers change when the topology changes", "[model]") {
  World world;
  const NodeId node = world.AddNode("n", 1);
  uint64_t version = world.state.topology_version(), members = world.state.members_version();
  const auto moved = [&](bool of_members) {
    const bool topology = world.state.topology_version() > version;
    const bool same = world.state.members_version() == members;
    version = world.state.topology_version();
    members = world.state.members_version();
    return topology && same != of_members;
  };
  const HyperNodeId rack = Make(world, Domain("rack", 1));
  CHECK(moved(true));
  REQUIRE(world.Try(NodesJoined{rack, {node}}).ok());
  CHECK(moved(false));
  HyperNodeSpec degraded = Domain("rack", 1);
  degraded.health = DomainHealth::kDegraded;
  REQUIRE(world.Try(HyperNodeChanged{rack, degraded}).ok());
  CHECK(moved(false));
  degraded.members = {{.text = "n"}};
  REQUIRE(world.Try(HyperNodeChanged{rack, degraded}).ok());
  CHECK(moved(true));
  REQUIRE(world.Try(HyperNodeDeleted{rack}).ok());
  CHECK(moved(true));
}

TEST_CASE("an invalid HyperNode is rejected with its name, and nothing changes", "[model]") {
  World world;
  const NodeId node = world.AddNode("n", 1);
  const HyperNodeId rack = Make(world, Domain("rack", 1));
  const HyperNodeId pod = Make(world, Domain("pod", 2, {"rack"}));
  const HyperNodeId next = world.state.next_hyper_node_id();
  REQUIRE(world.Try(NodesJoined{rack, {node}}).ok());
  const uint64_t before = Fingerprint(world.state);
  const auto refusal = [&](EventBody body) {
    const absl::Status status = world.Try(std::move(body));
    CHECK(Fingerprint(world.state) == before);
    return std::string(status.message());
  };
  CHECK(refusal(HyperNodeChanged{HyperNodeId{9}, Domain("x", 1)}) ==
        "the next HyperNode is 3, not 9");
  CHECK(refusal(HyperNodeChanged{next, Domain("rack", 1)}) == "HyperNode rack exists");
  CHECK(refusal(HyperNodeChanged{rack, Domain("row", 1)}) ==
        "HyperNode rack (1) cannot become row");
  CHECK(refusal(HyperNodeChanged{next, Domain("spine", 3, {"rack"})}) ==
        "HyperNode rack is a member of pod and of spine: one parent each");
  CHECK(refusal(HyperNodeChanged{rack, Domain("rack", 3, {"pod"})}) ==
        "HyperNodes would contain themselves: rack -> pod -> rack");
  CHECK(refusal(HyperNodeChanged{rack, Domain("rack", 2)}) ==
        "HyperNode rack of tier 2 cannot be a member of pod of tier 2: tiers rise from member to "
        "parent");
  HyperNodeSpec twice = Domain("x", 2, {"y", "y"});
  CHECK(refusal(HyperNodeChanged{next, twice}) == "HyperNode x names y twice");
  HyperNodeSpec by_regex = Domain("x", 2, {"y.*"});
  by_regex.members[0].match = Member::Match::kRegex;
  CHECK(refusal(HyperNodeChanged{next, by_regex}) ==
        "HyperNode x: HyperNodes are members by their exact names");
  CHECK(refusal(HyperNodeDeleted{next}) == "no HyperNode 3");
  CHECK(refusal(NodesJoined{next, {node}}) == "no HyperNode 3");
  CHECK(refusal(NodesJoined{pod, {}}) == "no nodes to join or leave a HyperNode");
  CHECK(refusal(NodesJoined{pod, {node, node}}) == "nodes must be ascending, each once");
  CHECK(refusal(NodesJoined{pod, {NodeId{7}}}) == "no node 7");
  CHECK(refusal(NodesJoined{rack, {node}}) == "node n (1) is already in HyperNode rack (1)");
  CHECK(refusal(NodesLeft{pod, {node}}) == "node n (1) is not in HyperNode pod (2)");
}

TEST_CASE("a job's topology constraints are stored and validated", "[model]") {
  World world;
  const QueueId q = world.AddQueue("q", kRootQueue);
  JobSpec spec = JobOf("j", q, {GroupOfGpus("w", 4, 1)});
  spec.topology = Within(TopologyMode::kHard, 2);
  GroupSpec& group = spec.groups[0];
  group.partition_size = 2;
  group.topology = Within(TopologyMode::kSoft, 0, "rack");
  group.partition_topology = Within(TopologyMode::kHard, 1, "", "nvlink");
  group.affinity_tier = 1;
  group.communication = 100;
  const JobId job = world.Submit(spec);
  CHECK(SpecOf(world.state, world.job(job)) == spec);
  CHECK(*world.job(job).topology == spec.topology);
  CheckWhole(world);

  const auto refusal = [&](const JobSpec& wrong) {
    return std::string(world.Try(JobSubmitted{world.state.next_job_id(), wrong}).message());
  };
  JobSpec wrong = JobOf("k", q, {GroupOfGpus("w", 1, 1)});
  wrong.topology.highest_tier = 1;
  CHECK(refusal(wrong) == "job k: a topology constraint needs a mode");
  wrong.topology = Within(TopologyMode::kHard, 1, "rack");
  CHECK(refusal(wrong) ==
        "job k: a topology constraint names its tier by number or by name, not both");
  wrong.topology = Within(TopologyMode::kHard, 1);
  wrong.topology.patience = absl::Minutes(1);
  CHECK(refusal(wrong) == "job k: patience must not be negative, and needs a soft topology");
  wrong.topology = {};
  wrong.groups[0].partition_topology.mode = TopologyMode::kSoft;
  CHECK(refusal(wrong) == "group w of job k: a topology of partitions needs partitions");
  wrong.groups[0].partition_topology = {};
  wrong.groups[0].communication = -1;
  CHECK(refusal(wrong) == "group w of job k: communication must be 0 to 16000, not -1");
}

TEST_CASE("jobs with different topology share nothing", "[model]") {
  Interner interner;
  const TopologyConstraint hard = Within(TopologyMode::kHard, 1);
  const GroupSpec group = GroupOfGpus("w", 1, 1);
  const JobTemplate* plain = interner.AcquireTemplate({group}, {});
  const JobTemplate* near = interner.AcquireTemplate({group}, {}, hard);
  CHECK(near != plain);
  CHECK(interner.AcquireTemplate({group}, {}, hard) == near);
  GroupSpec talks = group;
  talks.communication = 5;
  CHECK(interner.AcquireTemplate({talks}, {}, hard) != near);
}

}  // namespace
}  // namespace berth
