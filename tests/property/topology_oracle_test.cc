// Gangs with topology constraints on random small trees, compared with brute force over domains.
#include <functional>
#include <map>

#include "tests/property/dice.h"
#include "tests/unit/core/testing/evictions.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::GroupShape;
using testing::JobShape;

constexpr int kRoot = 1000;

// The tree as the HyperNodes define it, without an index.
struct Oracle {
  explicit Oracle(const Fabric& fabric, std::function<int(const Node&)> fits)
      : state(fabric.state()) {
    state.hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode&) { domains.push_back(id); });
    state.nodes().ForEach([&](NodeId id, const Node& node) {
      for (HyperNodeId domain : fabric.ChainOf(id, "network")) room[domain] += fits(node);
      room[HyperNodeId{}] += fits(node);
    });
  }
  int Tier(HyperNodeId id) const {
    return id == HyperNodeId{} ? kRoot : state.hyper_nodes().At(id).spec.tier;
  }
  // The root is allowed, too, if a tier above the highest is requested.
  bool Allows(int highest_tier, HyperNodeId id) const {
    if (id != HyperNodeId{}) return Tier(id) <= highest_tier;
    int highest = 0;
    for (HyperNodeId d : domains) highest = std::max(highest, Tier(d));
    return highest_tier > highest;
  }
  bool Below(HyperNodeId low, HyperNodeId high) const {
    for (; low != high; low = state.hyper_nodes().At(low).parent) {
      if (low == HyperNodeId{}) return false;
    }
    return true;
  }
  // n partitions of s tasks, each in a domain of at most that tier, all below `top`. All choices
  // are tried. A choice is possible if no domain gets more tasks than it has room for.
  bool PartsFit(HyperNodeId top, int n, int s, int tier) const {
    std::vector<HyperNodeId> may;
    for (HyperNodeId d : domains) {
      if (Below(d, top) && Tier(d) <= tier) may.push_back(d);
    }
    std::map<HyperNodeId, int> asked;
    const std::function<bool(int, size_t)> place = [&](int left, size_t from) {
      if (left == 0) return true;
      for (size_t i = from; i < may.size(); ++i) {
        bool possible = true;
        for (HyperNodeId d = may[i];; d = state.hyper_nodes().At(d).parent) {
          asked[d] += s;
          possible = possible && asked[d] <= room.at(d);
          if (d == HyperNodeId{}) break;
        }
        if (possible && place(left - 1, i)) return true;
        for (HyperNodeId d = may[i];; d = state.hyper_nodes().At(d).parent) {
          asked[d] -= s;
          if (d == HyperNodeId{}) break;
        }
      }
      return false;
    };
    return place(n, 0);
  }

  const ClusterState& state;
  std::vector<HyperNodeId> domains;
  std::map<HyperNodeId, int> room;
};

// Racks of different sizes; some nodes are in no rack, some directly in a pod.
Fabric RandomFabric(Dice& dice, Policies policies) {
  Fabric fabric(std::move(policies));
  const int racks = dice.Between(1, 6);
  for (int r = 0; r < racks; ++r) fabric.AddRack(dice.Between(1, 3), {.gpus = dice.Between(1, 4)});
  fabric.AddAbove("p", 2, "pod", "r", dice.Between(1, 3));
  if (dice.Chance(70)) fabric.AddAbove("s", 4, "spine", "p", dice.Between(1, 3));
  if (dice.Chance(30)) fabric.AddNode("loose", {.gpus = 3});
  if (dice.Chance(30)) {
    const NodeId node = fabric.AddNode("inpod", {.gpus = 2});
    fabric.Must(NodesJoined{.domain = fabric.state().FindHyperNode("p1")->id, .nodes = {node}});
  }
  return fabric;
}

int FreeGpus(const Node& node) {
  DeviceSet free = node.healthy;
  free -= TakenDevices(node).InUse();
  return free.Count();
}

struct Asked {
  TopologyConstraint job;
  int partition = 0;       // tasks; 0: none
  int partition_tier = 0;  // hard; 0: no constraint
  int tasks = 1;
  int gpus = 1;
};

Asked RandomAsk(Dice& dice) {
  Asked ask;
  const int mode = dice.Below(10);
  if (mode < 6) ask.job = testing::HardTier(dice.Chance(20) ? 4 : dice.Between(1, 3));
  if (mode >= 6 && mode < 8) ask.job = testing::Soft();
  ask.gpus = dice.Between(1, 2);
  ask.tasks = dice.Between(1, 8);
  if (dice.Chance(50)) {
    ask.partition = dice.Between(1, 3);
    ask.tasks = ask.partition * dice.Between(1, 3);
    ask.partition_tier = dice.Chance(80) ? dice.Between(1, 2) : 0;
  }
  return ask;
}

JobSpec SpecOf(Fabric& fabric, const Asked& ask, const std::string& name, JobShape shape = {}) {
  GroupShape group{.replicas = ask.tasks, .gpus = ask.gpus};
  group.cpu = 0;
  JobSpec spec = fabric.SpecFor(name, ask.job, group, std::move(shape));
  spec.groups[0].partition_size = ask.partition;
  if (ask.partition_tier > 0) {
    spec.groups[0].partition_topology = testing::HardTier(ask.partition_tier);
  }
  return spec;
}

// The lowest tier of an allowed domain that can hold it; nullopt if there is none.
std::optional<int> LowestTier(const Oracle& oracle, const Asked& ask) {
  std::optional<int> lowest;
  std::vector<HyperNodeId> tops = oracle.domains;
  tops.push_back(HyperNodeId{});
  for (HyperNodeId top : tops) {
    const int tier = oracle.Tier(top);
    const bool hard = ask.job.mode == TopologyMode::kHard;
    if (hard && !oracle.Allows(ask.job.highest_tier, top)) continue;
    if (ask.job.mode == TopologyMode::kNone && tier != kRoot) continue;
    bool fits = oracle.room.contains(top) && oracle.room.at(top) >= ask.tasks;
    if (fits && ask.partition_tier > 0) {
      fits = oracle.PartsFit(top, ask.tasks / ask.partition, ask.partition, ask.partition_tier);
    }
    if (fits && (!lowest.has_value() || tier < *lowest)) lowest = tier;
  }
  return lowest;
}

int TierOfTasks(const Fabric& fabric, const Job& job, size_t begin, size_t end) {
  std::vector<HyperNodeId> common = fabric.ChainOf(job.tasks[begin].node, "network");
  for (size_t i = begin; i < end; ++i) {
    const auto chain = fabric.ChainOf(job.tasks[i].node, "network");
    std::erase_if(common, [&](HyperNodeId d) {
      return std::find(chain.begin(), chain.end(), d) == chain.end();
    });
  }
  return common.empty() ? kRoot : fabric.state().hyper_nodes().At(common.front()).spec.tier;
}

void CheckPartitions(const Fabric& fabric, const Job& job, const Asked& ask) {
  if (ask.partition_tier == 0) return;
  const auto size = static_cast<size_t>(ask.partition);
  for (size_t begin = 0; begin < job.tasks.size(); begin += size) {
    REQUIRE(TierOfTasks(fabric, job, begin, begin + size) <= ask.partition_tier);
  }
}

TEST_CASE("a gang is placed if and only if some domain can hold it, and at the lowest tier") {
  int placed = 0, refused = 0, parts = 0;
  for (uint32_t seed = 1; seed <= 700; ++seed) {
    Dice dice(seed);
    INFO("seed " << seed);
    Fabric fabric = RandomFabric(dice, testing::PoliciesWith({"allocate"}));
    const int jobs = dice.Between(0, 3);
    for (int i = 0; i < jobs; ++i) {
      fabric.SubmitSpec(SpecOf(fabric, RandomAsk(dice), absl::StrCat("before", i)));
      fabric.Settle();
    }
    const Asked ask = RandomAsk(dice);
    const Oracle oracle(fabric, [&](const Node& node) { return FreeGpus(node) / ask.gpus; });
    const std::optional<int> lowest = LowestTier(oracle, ask);
    const JobId id = fabric.SubmitSpec(SpecOf(fabric, ask, "gang"));
    fabric.Settle();
    const Job& job = fabric.job(id);
    REQUIRE((job.occupying > 0) == lowest.has_value());
    if (!lowest.has_value()) {
      ++refused;
      continue;
    }
    ++placed;
    REQUIRE(job.occupying == ask.tasks);
    if (ask.job.mode != TopologyMode::kNone) {
      REQUIRE(TierOfTasks(fabric, job, 0, job.tasks.size()) <= *lowest);
      if (ask.job.mode == TopologyMode::kHard && *lowest != kRoot) {
        REQUIRE(*lowest <= ask.job.highest_tier);
      }
    }
    CheckPartitions(fabric, job, ask);
    parts += ask.partition_tier > 0 ? 1 : 0;
  }
  CHECK(placed > 200);
  CHECK(refused > 50);
  CHECK(parts > 70);
}

TEST_CASE("jobs are evicted for a gang if and only if a domain could hold it, at the lowest tier") {
  int planned = 0, impossible = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    INFO("seed " << seed);
    Fabric fabric = RandomFabric(dice, testing::Evicting({"allocate", "preempt"}));
    for (int i = 0; i < 14; ++i) {
      JobShape shape;
      shape.preemptible = dice.Chance(75);
      shape.groups = {{.cpu = 0, .gpus = dice.Between(1, 2)}};
      const JobId id = fabric.Submit(absl::StrCat("j", i), shape);
      fabric.RunAll(id);
    }
    Asked ask = RandomAsk(dice);
    ask.job = testing::HardTier(dice.Between(1, 4));
    const Oracle now(fabric, [&](const Node& node) { return FreeGpus(node) / ask.gpus; });
    const Oracle freed(fabric, [&](const Node& node) {
      int gpus = FreeGpus(node);
      for (TaskKey key : node.tasks) {
        const Job& other = fabric.job(key.job);
        if (other.preemptible) gpus += other.tasks[key.task].devices.Count();
      }
      return gpus / ask.gpus;
    });
    JobShape high;
    high.priority = 5;
    const JobId id = fabric.SubmitSpec(SpecOf(fabric, ask, "gang", high));
    const Plan plan =
        PlanCycle(fabric.state(), fabric.policies(), fabric.now(), testing::TestCluster::kNoBudget);
    int evicted = 0;
    std::vector<HyperNodeId> common;
    bool nominated = false, bound = false;
    for (const EventBody& decision : plan.decisions) {
      if (const auto* released = std::get_if<TasksReleased>(&decision)) {
        evicted += static_cast<int>(released->tasks.size());
        REQUIRE(released->beneficiary == id);
      }
      if (const auto* places = std::get_if<TasksNominated>(&decision)) {
        nominated |= places->job == id;
        common = fabric.ChainOf(places->placements[0].node, "network");
        for (const Placement& place : places->placements) {
          const auto chain = fabric.ChainOf(place.node, "network");
          std::erase_if(common, [&](HyperNodeId d) {
            return std::find(chain.begin(), chain.end(), d) == chain.end();
          });
        }
      }
      if (const auto* places = std::get_if<TasksBound>(&decision)) bound |= places->job == id;
    }
    REQUIRE(bound == LowestTier(now, ask).has_value());
    if (bound) continue;
    const std::optional<int> lowest = LowestTier(freed, ask);
    REQUIRE(nominated == lowest.has_value());
    if (!nominated) {
      ++impossible;
      REQUIRE(evicted == 0);
      continue;
    }
    ++planned;
    REQUIRE(evicted > 0);
    const bool root = common.empty();
    REQUIRE((root ? kRoot : fabric.state().hyper_nodes().At(common.front()).spec.tier) <= *lowest);
    for (const EventBody& decision : plan.decisions) fabric.Must(decision);
  }
  CHECK(planned > 25);
  CHECK(impossible > 12);
}

}  // namespace
}  // namespace berth
