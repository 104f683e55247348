// Task ranks follow the tree: neighbours in rank are neighbours in the cluster.
#include <map>
#include <set>

#include "core/topology/tree.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::Hard;
using testing::Soft;

// Tasks in order of rank.
std::vector<uint32_t> ByRank(const Job& job) {
  std::vector<uint32_t> tasks(job.tasks.size());
  for (uint32_t i = 0; i < job.tasks.size(); ++i) tasks[job.tasks[i].rank] = i;
  return tasks;
}

std::string Nodes(const Fabric& fabric, JobId id) {
  const Job& job = fabric.job(id);
  return absl::StrJoin(ByRank(job), " ", [&](std::string* out, uint32_t task) {
    out->append(fabric.state().nodes().At(job.tasks[task].node).spec.name);
  });
}

// How often the ring 0, 1, .. n-1, 0 passes from one domain of at most that tier to another.
int Crossings(const Fabric& fabric, const std::vector<NodeId>& nodes, int tier) {
  const TopologyTree tree(fabric.state(), "network");
  int crossings = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId a = nodes[i], b = nodes[(i + 1) % nodes.size()];
    const auto first = tree.DomainAt(a, tier), second = tree.DomainAt(b, tier);
    const bool same = first.has_value() ? first == second : a == b;
    crossings += same ? 0 : 1;
  }
  return crossings;
}
int Domains(const Fabric& fabric, const std::vector<NodeId>& nodes, int tier) {
  const TopologyTree tree(fabric.state(), "network");
  std::set<std::pair<bool, uint32_t>> domains;
  for (NodeId node : nodes) {
    const auto at = tree.DomainAt(node, tier);
    domains.insert(at.has_value() ? std::pair(true, *at) : std::pair(false, node.value));
  }
  return static_cast<int>(domains.size());
}

TEST_CASE("the ring crosses each tier as seldom as the nodes allow") {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    INFO("seed " << seed);
    Fabric fabric;
    fabric.AddRacks(dice.Between(1, 6), dice.Between(1, 4), {.gpus = 4});
    fabric.AddAbove("p", 2, "pod", "r", dice.Between(1, 3));
    if (dice.Chance(50)) fabric.AddAbove("s", 3, "spine", "p", 2);
    if (dice.Chance(30)) fabric.AddNode("loose", {.gpus = 4});
    const int each = dice.Between(1, 2), tasks = dice.Between(1, 10);
    const JobId id = fabric.Submit("gang", {.groups = {{.replicas = tasks, .gpus = each}}});
    // Any nodes, in any order: ranks do not depend on the order of placement.
    const Job& job = fabric.job(id);
    TasksBound bound{.job = id, .gang = true, .placements = {}};
    std::map<NodeId, int> used;
    const auto nodes = static_cast<int>(fabric.state().nodes().size());
    for (int t = 0, tries = 0; t < tasks && tries < 1000; ++tries) {
      const NodeId node{static_cast<uint32_t>(dice.Between(1, nodes))};
      if (used[node] + each > 4) continue;
      DeviceSet devices;
      for (int d = 0; d < each; ++d) devices.Add(static_cast<size_t>(used[node]++));
      bound.placements.push_back({static_cast<uint32_t>(t++), node, devices});
    }
    if (static_cast<int>(bound.placements.size()) < tasks) continue;
    fabric.Must(bound);
    std::vector<NodeId> ring;
    for (uint32_t task : ByRank(job)) ring.push_back(job.tasks[task].node);
    for (int tier = 0; tier <= 3; ++tier) {
      const int domains = Domains(fabric, ring, tier);
      REQUIRE(Crossings(fabric, ring, tier) == (domains == 1 ? 0 : domains));
    }
  }
}

TEST_CASE("with equally many tasks on each node, ranks i and i + k use the same device") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 4});
  const JobId id = fabric.Ask("gang", Soft(), {.replicas = 16, .gpus = 1});
  fabric.Settle();
  const Job& job = fabric.job(id);
  const std::vector<uint32_t> tasks = ByRank(job);
  CHECK(Nodes(fabric, id) ==
        "r1n1 r1n1 r1n1 r1n1 r1n2 r1n2 r1n2 r1n2 r2n1 r2n1 r2n1 r2n1 r2n2 r2n2 r2n2 r2n2");
  for (size_t i = 0; i < 16; ++i) {
    CHECK(job.tasks[tasks[i]].devices == job.tasks[tasks[i % 4]].devices);
    CHECK(job.tasks[tasks[i]].devices.Has(i % 4));
  }
}

TEST_CASE("partitions stay whole") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 4});
  const JobId id = fabric.SubmitSpec([&] {
    JobSpec spec = fabric.SpecFor("gang", Soft(), {.replicas = 6, .gpus = 2});
    spec.groups[0].partition_size = 3;
    return spec;
  }());
  // Partition 0 (tasks 0 1 2): two in r2, one in r1; partition 1 in r1.
  const auto on = [&](uint32_t task, const char* node, size_t first) {
    DeviceSet devices;
    devices.Add(first);
    devices.Add(first + 1);
    return Placement{task, fabric.node_id(node), devices};
  };
  fabric.Must(TasksBound{.job = id,
                         .gang = true,
                         .placements = {on(0, "r2n1", 0), on(1, "r1n2", 0), on(2, "r2n1", 2),
                                        on(3, "r1n1", 2), on(4, "r1n1", 0), on(5, "r1n2", 2)}});
  CHECK(ByRank(fabric.job(id)) == std::vector<uint32_t>{4, 3, 5, 1, 0, 2});
}

TEST_CASE("groups keep their order, and a later group continues where the previous ended") {
  Fabric fabric;
  fabric.AddRacks(3, 2, {.gpus = 2});
  testing::JobShape shape;
  shape.groups = {{.name = "master", .replicas = 1, .gpus = 1},
                  {.name = "worker", .replicas = 4, .gpus = 1}};
  const JobId id = fabric.Submit("gang", shape);
  DeviceSet first, second;
  first.Add(0);
  second.Add(1);
  fabric.Must(TasksBound{.job = id,
                         .gang = true,
                         .placements = {{0, fabric.node_id("r2n2"), first},
                                        {1, fabric.node_id("r3n1"), first},
                                        {2, fabric.node_id("r1n1"), first},
                                        {3, fabric.node_id("r2n1"), first},
                                        {4, fabric.node_id("r2n2"), second}}});
  CHECK(Nodes(fabric, id) == "r2n2 r2n2 r2n1 r1n1 r3n1");
}

TEST_CASE("ranks follow the kind of the widest constraint") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 1});
  fabric.AddDomain("a", 1, "clique", {}, {fabric.node_id("r1n2"), fabric.node_id("r2n2")},
                   "nvlink");
  fabric.AddDomain("b", 1, "clique", {}, {fabric.node_id("r1n1"), fabric.node_id("r2n1")},
                   "nvlink");
  TopologyConstraint soft = Soft();
  soft.kind = "nvlink";
  const JobId id = fabric.Ask("gang", soft, {.replicas = 4, .gpus = 1});
  fabric.Settle();
  CHECK(Nodes(fabric, id) == "r1n2 r2n2 r1n1 r2n1");
}

}  // namespace
}  // namespace berth
