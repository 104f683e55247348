// Placement of gangs with a topology constraint.
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::GroupShape;
using testing::Hard;
using testing::HardTier;
using testing::JobShape;
using testing::Soft;

// Tasks of one whole node.
GroupShape Whole(int replicas) { return {.replicas = replicas, .gpus = 4}; }

// 2 pods of 2 racks of 4 nodes of 4 GPUs.
Fabric Small() {
  Fabric fabric;
  fabric.AddRacks(4, 4, {.gpus = 4});
  fabric.AddAbove("p", 2, "pod", "r", 2);
  return fabric;
}

TEST_CASE("a gang goes to the tightest domain of the lowest tier") {
  Fabric fabric = Small();
  fabric.Occupy("r1n1", 4);
  fabric.Occupy("r3n1", 4);
  fabric.Occupy("r3n2", 4);
  const JobId two = fabric.Ask("two", Hard("rack"), Whole(2));
  const JobId three = fabric.Ask("three", Hard("rack"), Whole(3));
  const JobId four = fabric.Ask("four", HardTier(1), Whole(4));
  fabric.Settle();
  CHECK(fabric.Racks(two) == "r3");
  CHECK(fabric.Racks(three) == "r1");
  CHECK(fabric.Racks(four) == "r2");
}

TEST_CASE("a hard constraint waits where no domain has room, and reports the best domain") {
  Fabric fabric = Small();
  for (const char* node : {"r1n1", "r2n1", "r2n2", "r3n1", "r4n1"}) fabric.Occupy(node, 4);
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(4));
  fabric.Settle();
  CHECK(fabric.Tasks(gang) == "....");
  const std::vector<WaitReason> why = fabric.Why(gang);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kInsufficientResources);
  CHECK(why[0].detail == "r1 has room for 3 of 4 tasks now, as much as any rack");
  CHECK(why[0].resource == "gpu");
  CHECK(why[0].needed == 16 * kWhole);
  CHECK(why[0].free == 12 * kWhole);
}

TEST_CASE(
    "a gang that no domain of the tier could ever hold is never placed, with the alternatives") {
  Fabric fabric = Small();
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(6));
  fabric.Settle();
  const std::vector<WaitReason> why = fabric.Why(gang);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kNeverFits);
  CHECK(why[0].detail ==
        "no rack, even empty, holds 6 tasks; the largest, r1, holds 4; the lowest tier that could "
        "is pod");
  const JobId none = fabric.Ask("none", Hard("row"), Whole(1));
  const JobId kind = fabric.Ask("kind", Hard("", "nvlink"), Whole(1));
  fabric.Settle();
  CHECK(fabric.Why(none)[0].code == WaitCode::kNeverFits);
  CHECK(fabric.Why(kind)[0].code == WaitCode::kNeverFits);
}

TEST_CASE("a hard constraint of a higher tier still takes the lowest possible tier") {
  Fabric fabric = Small();
  const JobId four = fabric.Ask("four", Hard("pod"), Whole(4));
  const JobId eight = fabric.Ask("eight", Hard("pod"), Whole(8));
  fabric.Settle();
  CHECK(fabric.TierOf(four) == 1);
  CHECK(fabric.TierOf(eight) == 2);
  CHECK(fabric.Racks(eight) == "r3 r4");
}

TEST_CASE("a soft constraint takes the lowest tier that fits, finally the root") {
  Fabric fabric = Small();
  const JobId two = fabric.Ask("two", Soft("rack"), Whole(2));
  const JobId ten = fabric.Ask("ten", Soft("rack"), Whole(10));
  fabric.Settle();
  CHECK(fabric.TierOf(two) == 1);
  CHECK(fabric.TierOf(ten) == 1000);
  // The pod that holds most, and the tightest of the racks that hold the rest.
  CHECK(fabric.Tasks(ten) == "BBBBBBBBBB");
  CHECK(fabric.Racks(ten) == "r1 r3 r4");
}

TEST_CASE("a soft constraint without HyperNodes of its kind has no effect") {
  Fabric fabric;
  fabric.AddNodes("n", 2, {.gpus = 4});
  const JobId gang = fabric.Ask("gang", Soft(), Whole(2));
  fabric.Settle();
  CHECK(fabric.Where(gang) == "n1 n2");
}

TEST_CASE("over several domains, as few as possible of each tier are used") {
  Fabric fabric;
  fabric.AddRacks(6, 4, {.gpus = 4});
  fabric.AddAbove("p", 2, "pod", "r", 3);
  fabric.Occupy("r1n1", 4);
  fabric.Occupy("r2n1", 4);
  fabric.Occupy("r2n2", 4);
  // p1 has 3 + 2 + 4, p2 has 12: 9 use all of p1; 5 more go to two racks of p2.
  const JobId nine = fabric.Ask("nine", Hard("pod"), Whole(9));
  const JobId five = fabric.Ask("five", Hard("pod"), Whole(5));
  fabric.Settle();
  CHECK(fabric.Racks(nine) == "r1 r2 r3");
  CHECK(fabric.Racks(five) == "r4 r5");
}

TEST_CASE("the tightest rack takes the rest") {
  Fabric fabric;
  fabric.AddRacks(3, 4, {.gpus = 4});
  fabric.AddAbove("p", 2, "pod", "r", 3);
  fabric.Occupy("r2n1", 4);
  fabric.Occupy("r2n2", 4);
  const JobId six = fabric.Ask("six", Hard("pod"), Whole(6));
  fabric.Settle();
  CHECK(fabric.Racks(six) == "r1 r2");
}

TEST_CASE("degraded domains come last, or are excluded") {
  PolicyConfig config;
  config.actions = {"allocate"};
  SECTION("avoid") {
    Fabric fabric(*Policies::Create(config));
    fabric.AddRacks(2, 4, {.gpus = 4});
    fabric.SetHealth("r1", DomainHealth::kDegraded);
    const JobId first = fabric.Ask("first", Hard("rack"), Whole(3));
    const JobId second = fabric.Ask("second", Hard("rack"), Whole(3));
    fabric.Settle();
    CHECK(fabric.Racks(first) == "r2");
    CHECK(fabric.Racks(second) == "r1");
  }
  SECTION("exclude") {
    config.topology.degraded = DegradedDomains::kExclude;
    Fabric fabric(*Policies::Create(config));
    fabric.AddRacks(2, 4, {.gpus = 4});
    fabric.SetHealth("r1", DomainHealth::kDegraded);
    const JobId first = fabric.Ask("first", Hard("rack"), Whole(3));
    const JobId second = fabric.Ask("second", Hard("rack"), Whole(3));
    const JobId soft = fabric.Ask("soft", Soft(), Whole(2));
    fabric.Settle();
    CHECK(fabric.Racks(first) == "r2");
    CHECK(fabric.Tasks(second) == "...");
    CHECK(fabric.Tasks(soft) == "..");
    fabric.SetHealth("r1", DomainHealth::kOk);
    fabric.Settle();
    CHECK(fabric.Racks(second) == "r1");
  }
}

TEST_CASE("partitions are placed whole, each in one domain") {
  Fabric fabric = Small();
  fabric.Occupy("r1n1", 4);
  fabric.Occupy("r3n1", 4);
  JobShape shape;
  shape.groups = {Whole(6)};
  JobSpec spec = fabric.SpecOfShape("parts", shape);
  spec.groups[0].partition_size = 3;
  spec.groups[0].partition_topology = Hard("rack");
  const JobId parts = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Racks(parts) == "r1 r2");
  // Racks of 0, 1, 3, 4: for partitions of 3 there is room for 2, not 3.
  spec.name = "more";
  spec.groups[0].replicas = spec.groups[0].min_available = spec.min_available = 9;
  const JobId more = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Tasks(more) == ".........");
}

TEST_CASE("partitions in racks, the group in a pod") {
  Fabric fabric = Small();
  fabric.Occupy("r1n1", 4);
  fabric.Occupy("r3n1", 4);
  fabric.Occupy("r4n1", 4);
  fabric.Occupy("r4n2", 4);
  // p1 {3 4}, p2 {3 2}: 2 partitions of 3 need p1; 5 tasks alone would fit p2.
  JobSpec spec = fabric.SpecFor("parts", Hard("pod"), Whole(6));
  spec.groups[0].partition_size = 3;
  spec.groups[0].partition_topology = Hard("rack");
  const JobId parts = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Racks(parts) == "r1 r2");
  const auto& tasks = fabric.job(parts).tasks;
  const auto rack = [&](int i) {
    return fabric.state().DomainOf(fabric.state().nodes().At(tasks[i].node), "network")->spec.name;
  };
  CHECK(rack(0) == rack(2));
  CHECK(rack(3) == rack(5));
  CHECK(rack(0) != rack(3));
}

TEST_CASE("each of several groups of a job goes to one rack") {
  Fabric fabric = Small();
  JobShape shape;
  shape.groups = {{.name = "a", .replicas = 3, .gpus = 4}, {.name = "b", .replicas = 4, .gpus = 4}};
  JobSpec spec = fabric.SpecOfShape("two", shape);
  for (GroupSpec& group : spec.groups) group.topology = Hard("rack");
  const JobId two = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Racks(two) == "r1 r2");
}

TEST_CASE("the group with heavier communication is placed first") {
  for (const bool heavy : {false, true}) {
    Fabric fabric;
    fabric.AddRacks(2, 4, {.gpus = 4});
    fabric.AddAbove("p", 2, "pod", "r", 2);
    fabric.Occupy("r1n1", 4);
    JobShape shape;
    shape.groups = {{.name = "a", .replicas = 3, .gpus = 4},
                    {.name = "b", .replicas = 3, .gpus = 4}};
    JobSpec spec = fabric.SpecOfShape("two", shape);
    spec.topology = Hard("pod");
    spec.groups[1].communication = heavy ? 5 : 0;
    const JobId two = fabric.SubmitSpec(spec);
    fabric.Settle();
    // The first takes the tightest rack that holds it.
    CHECK(fabric.Where(two) ==
          (heavy ? "r2n1 r2n2 r2n3 r1n2 r1n3 r1n4" : "r1n2 r1n3 r1n4 r2n1 r2n2 r2n3"));
  }
}

TEST_CASE("constraints may have different kinds: an nvlink clique inside a rack") {
  Fabric fabric;
  fabric.AddRacks(2, 4, {.gpus = 4});
  const auto ids = [&](std::vector<std::string> names) {
    std::vector<NodeId> nodes;
    for (const std::string& name : names) nodes.push_back(fabric.node_id(name));
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  };
  fabric.AddDomain("c1", 1, "clique", {}, ids({"r1n1", "r1n2", "r2n1"}), "nvlink");
  fabric.AddDomain("c2", 1, "clique", {}, ids({"r2n2", "r2n3", "r2n4"}), "nvlink");
  JobSpec spec = fabric.SpecFor("gang", Hard("rack"), Whole(3));
  spec.groups[0].topology = Hard("clique", "nvlink");
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Where(gang) == "r2n2 r2n3 r2n4");
}

TEST_CASE("a node in no domain holds no task of a hard constraint") {
  Fabric fabric;
  fabric.AddNodes("loose", 2, {.gpus = 4});
  fabric.AddRacks(1, 1, {.gpus = 4});
  const JobId one = fabric.Ask("one", Hard("rack"), Whole(1));
  const JobId two = fabric.Ask("two", Hard("rack"), Whole(2));
  const JobId soft = fabric.Ask("soft", Soft(), Whole(2));
  fabric.Settle();
  CHECK(fabric.Where(one) == "r1n1");
  CHECK(fabric.Tasks(two) == "..");
  CHECK(fabric.Where(soft) == "loose1 loose2");
}

TEST_CASE("a replacement stays in the domain of its gang, or waits") {
  Fabric fabric = Small();
  JobSpec spec = fabric.SpecFor("gang", Hard("rack"), Whole(3));
  spec.groups[0].membership = GangMembership::kIndependent;
  spec.groups[0].policies = {
      {.event = PolicyEvent::kTaskFailed, .action = PolicyAction::kRestartTask}};
  spec.max_retries = 9;
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.RunAll(gang);
  REQUIRE(fabric.Where(gang) == "r1n1 r1n2 r1n3");
  fabric.Must(NodeSteered{.id = fabric.node_id("r1n2"), .cordoned = true});
  fabric.Exit(gang, 1, 1);
  fabric.Advance(absl::Minutes(1));
  CHECK(fabric.Where(gang) == "r1n1 r1n4 r1n3");
  fabric.RunAll(gang);
  fabric.Must(NodeSteered{.id = fabric.node_id("r1n4"), .cordoned = true});
  fabric.Exit(gang, 1, 1);
  fabric.Advance(absl::Minutes(1));
  CHECK(fabric.Where(gang) == "r1n1 - r1n3");
  fabric.Must(NodeSteered{.id = fabric.node_id("r1n2"), .cordoned = false});
  fabric.Advance(absl::Minutes(1));
  CHECK(fabric.Where(gang) == "r1n1 r1n2 r1n3");
}

TEST_CASE("if the tree changed under a gang, its replacement goes where the others are") {
  Fabric fabric = Small();
  JobSpec spec = fabric.SpecFor("gang", Hard("rack"), Whole(2));
  spec.groups[0].membership = GangMembership::kIndependent;
  spec.groups[0].policies = {
      {.event = PolicyEvent::kTaskFailed, .action = PolicyAction::kRestartTask}};
  spec.max_retries = 9;
  spec.groups[0].replicas = spec.groups[0].min_available = spec.min_available = 3;
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.RunAll(gang);
  REQUIRE(fabric.Where(gang) == "r1n1 r1n2 r1n3");
  const HyperNodeId r2 = fabric.state().FindHyperNode("r2")->id;
  fabric.Must(NodesJoined{.domain = r2, .nodes = {fabric.node_id("r1n1")}});
  fabric.Exit(gang, 1, 1);
  fabric.Advance(absl::Minutes(1));
  CHECK(fabric.TierOf(gang) == 2);  // p1 holds the running tasks
  CHECK(fabric.Tasks(gang).find('.') == std::string::npos);
}

TEST_CASE("an elastic gang grows only inside its domain") {
  Fabric fabric = Small();
  GroupShape group = Whole(6);
  group.min_available = 2;
  const JobId gang = fabric.Ask("gang", Hard("rack"), group);
  fabric.Settle();
  CHECK(fabric.Racks(gang) == "r1");
  CHECK(fabric.Tasks(gang) == "BBBB..");
  const JobId wide = fabric.Ask("wide", Soft("rack"), group);
  fabric.Settle();
  CHECK(fabric.Tasks(wide) == "BBBBBB");
  CHECK(fabric.Racks(wide) == "r2 r3");
}

TEST_CASE("strategies at node level") {
  const auto run = [](Strategy strategy) {
    Fabric fabric;
    fabric.AddRacks(1, 3, {.gpus = 4});
    fabric.Occupy("r1n1", 3);
    fabric.Occupy("r1n2", 1);
    JobShape shape;
    shape.strategy = strategy;
    const JobId gang = fabric.Ask("gang", Hard("rack"), {.replicas = 5, .gpus = 1}, shape);
    fabric.Settle();
    return fabric.Where(gang);
  };
  CHECK(run(Strategy::kBinpack) == "r1n1 r1n2 r1n2 r1n2 r1n3");
  CHECK(run(Strategy::kSpread) == "r1n3 r1n2 r1n3 r1n2 r1n3");
  CHECK(run(Strategy::kColocate) == "r1n3 r1n3 r1n3 r1n3 r1n1");
}

TEST_CASE("one node for all tasks, if one has room") {
  Fabric fabric;
  fabric.AddRacks(1, 3, {.gpus = 4});
  fabric.Occupy("r1n1", 2);
  fabric.Occupy("r1n3", 1);
  const JobId gang = fabric.Ask("gang", Hard("rack"), {.replicas = 3, .gpus = 1});
  fabric.Settle();
  CHECK(fabric.Where(gang) == "r1n3 r1n3 r1n3");
}

TEST_CASE("groups apart and near, inside a domain") {
  Fabric fabric;
  fabric.AddRacks(2, 3, {.gpus = 4});
  fabric.Occupy("r1n1", 4);
  JobShape shape;
  shape.groups = {{.name = "a", .replicas = 3, .gpus = 1}, {.name = "b", .replicas = 3, .gpus = 1}};
  JobSpec spec = fabric.SpecOfShape("gang", shape);
  spec.topology = Hard("rack");
  spec.groups[0].apart_from = {0};
  spec.groups[1].near_groups = {0};
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.Settle();
  // r1 has only two free nodes, although six tasks would fit.
  CHECK(fabric.Racks(gang) == "r2");
  CHECK(fabric.Tasks(gang) == "BBBBBB");
}

TEST_CASE("groups near and apart by domain: affinity_tier") {
  Fabric fabric = Small();
  JobShape shape;
  shape.groups = {{.name = "a", .replicas = 2, .gpus = 4}, {.name = "b", .replicas = 2, .gpus = 4}};
  JobSpec spec = fabric.SpecOfShape("apart", shape);
  spec.groups[0].apart_from = {0};
  spec.groups[0].affinity_tier = 1;
  spec.groups[1].near_groups = {0};
  spec.groups[1].affinity_tier = 1;
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.Settle();
  REQUIRE(fabric.Tasks(gang) == "BBBB");
  const auto rack = [&](int i) {
    const NodeId node = fabric.job(gang).tasks[static_cast<size_t>(i)].node;
    return fabric.state().DomainOf(fabric.state().nodes().At(node), "network")->spec.name;
  };
  CHECK(rack(0) != rack(1));
  CHECK((rack(2) == rack(0) || rack(2) == rack(1)));
  CHECK((rack(3) == rack(0) || rack(3) == rack(1)));
}

TEST_CASE("equal jobs with different constraints do not share a verdict") {
  Fabric fabric = Small();
  const JobId never = fabric.Ask("never", Hard("rack"), Whole(6));
  const JobId pod = fabric.Ask("pod", Hard("pod"), Whole(6));
  fabric.Settle();
  CHECK(fabric.Tasks(never) == "......");
  CHECK(fabric.TierOf(pod) == 2);
}

}  // namespace
}  // namespace berth
