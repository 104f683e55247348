// Cached DomainFits compared with a new count, after random trials, rollbacks and commits.
#include "core/engine/cycle.h"
#include "core/topology/domain_placer.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/fabric.h"
#include "tests/unit/core/testing/layouts.h"

namespace berth {
namespace {

using testing::Fabric;

void CheckFits(Cycle& cycle, const std::string& kind, const FitKey& key) {
  const ClusterState& state = cycle.state();
  const TopologyTree* tree = TreesOf(cycle).Of(state, kind);
  if (tree == nullptr) return;
  const FitView view = FitsOf(cycle, *tree, key);
  std::vector<int64_t> sums(tree->domains().size(), 0);
  NodeSearch fresh(state, cycle.policies());
  state.nodes().ForEach([&](NodeId id, const Node&) {
    const int64_t most = key.one_per_node ? 1 : kMaxTasksPerJob;
    int64_t fits = 0;
    if (key.empty) fits = fresh.FitsEmpty(key.shape, id, most);
    if (!key.empty && state.free().Has(id)) fits = fresh.FitsFree(key.shape, id, most);
    REQUIRE(view.of_node[id.value] == fits);
    for (DomainIndex d = 0; d < sums.size(); ++d) sums[d] += tree->Holds(d, id) ? fits : 0;
  });
  REQUIRE(std::equal(sums.begin(), sums.end(), view.of_domain.begin(), view.of_domain.end()));
}

void Register(Fabric& fabric, NodeId id, NodeSpec spec) {
  const NodeStatus& status = fabric.state().nodes().At(id).status;
  fabric.Must(NodeRegistered{
      .id = id, .spec = std::move(spec), .epoch = status.epoch + 1, .agent_id = status.agent_id});
}

// The node reports how its GPUs are connected.
void Connect(Fabric& fabric, NodeId id, const testing::Matrix& matrix) {
  NodeSpec spec = fabric.state().nodes().At(id).spec;
  testing::SetDevices(matrix, &spec);
  Register(fabric, id, std::move(spec));
}

// Twelve tasks of `gpus` GPUs each, with no link worse than `least`.
JobId SubmitFloor(Fabric& fabric, int gpus, LinkClass least, int64_t gbps) {
  const std::string name = absl::StrCat("floor", fabric.state().next_job_id().value);
  JobSpec spec = fabric.SpecOfShape(name, {.groups = {{.replicas = 12, .gpus = gpus}}});
  DeviceRequest& request = spec.groups[0].shape.devices[0];
  request.min_link = least;
  request.min_bandwidth_gbps = gbps;
  return fabric.SubmitSpec(std::move(spec));
}

struct Walk {
  explicit Walk(uint32_t seed) : dice(seed) {
    fabric.AddRacks(dice.Between(2, 5), dice.Between(1, 4), {.gpus = 4});
    std::vector<NodeId> all;
    fabric.state().nodes().ForEach([&](NodeId id, const Node&) { all.push_back(id); });
    for (const NodeId id : all) {
      if (dice.Chance(60))
        Connect(fabric, id, dice.Chance(50) ? testing::Dgx1() : testing::Ac922());
    }
    fabric.AddAbove("p", 2, "pod", "r", 2);
    std::vector<NodeId> some;
    fabric.state().nodes().ForEach([&](NodeId id, const Node&) {
      if (dice.Chance(50)) some.push_back(id);
    });
    fabric.AddDomain("nv", 1, "clique", {}, some, "nvlink");
    for (int gpus = 0; gpus <= 4; ++gpus) {
      jobs.push_back(
          fabric.Submit(absl::StrCat("j", gpus), {.groups = {{.replicas = 12, .gpus = gpus}}}));
    }
    jobs.push_back(SubmitFloor(fabric, 2, LinkClass::kNvlink, 0));
    jobs.push_back(SubmitFloor(fabric, 4, LinkClass::kNvlink, 0));
    jobs.push_back(SubmitFloor(fabric, 2, LinkClass::kUnknown, 400));
  }

  void CheckAll(Cycle& cycle) {
    const int checks = dice.Between(1, 4);
    for (int i = 0; i < checks; ++i) {
      const JobId job = jobs[static_cast<size_t>(dice.Below(static_cast<int>(jobs.size())))];
      const ShapeId shape = fabric.job(job).groups[0].shape;
      const FitKey key{.shape = shape, .one_per_node = dice.Chance(20), .empty = dice.Chance(20)};
      CheckFits(cycle, dice.Chance(70) ? "network" : "nvlink", key);
    }
  }

  // A cycle of random trials, some of which are committed.
  std::vector<EventBody> TryThings() {
    Cycle cycle(fabric.state(), fabric.policies(), fabric.now(), 1 << 30);
    Transaction& transaction = cycle.transaction();
    std::vector<Transaction::Mark> marks = {transaction.mark()};
    for (int step = 0; step < 12; ++step) {
      const JobId id = jobs[static_cast<size_t>(dice.Below(static_cast<int>(jobs.size())))];
      const Job& job = fabric.job(id);
      const auto task = static_cast<uint32_t>(dice.Below(12));
      const int what = dice.Below(10);
      if (what < 4 && job.tasks[task].state == TaskState::kPending && !Ended(job.status.state)) {
        const std::optional<Found> found =
            cycle.search().Best(job.groups[0].shape, &cycle.counters().work);
        if (found.has_value()) {
          transaction.Place(id, {task, found->node, found->devices});
          CheckAll(cycle);
          if (dice.Chance(30)) transaction.UnplaceTo(0);
          if (!transaction.placed().empty()) transaction.BindPlaced(id, job.status.starts == 0);
        }
      } else if (what < 6 && Occupies(job.tasks[task].state)) {
        const Transaction::Mark mark = transaction.mark();
        transaction.Vanish(id, {&task, 1});
        CheckAll(cycle);
        transaction.RollbackTo(mark);
      } else if (what < 8) {
        marks.push_back(transaction.mark());
      } else if (what == 8 && marks.size() > 1) {
        transaction.RollbackTo(marks.back());
        marks.pop_back();
      }
      CheckAll(cycle);
    }
    return transaction.Commit();
  }

  // A random change outside of planning.
  void Happen() {
    const int what = dice.Below(8);
    const auto node = NodeId{static_cast<uint32_t>(
        dice.Between(1, static_cast<int>(fabric.state().next_node_id().value) - 1))};
    if (what == 0) {
      fabric.Must(NodeSteered{.id = node, .cordoned = dice.Chance(50)});
    } else if (what == 1) {
      fabric.AddNode(absl::StrCat("x", fabric.state().next_node_id().value), {.gpus = 2});
    } else if (what == 2) {
      const HyperNodeId rack = fabric.state().FindHyperNode("r1")->id;
      const HyperNode* now = fabric.state().DomainOf(fabric.state().nodes().At(node), "network");
      if (now == nullptr || now->id != rack) {
        fabric.Must(NodesJoined{.domain = rack, .nodes = {node}});
      }
    } else if (what == 3) {
      NodeSpec spec = fabric.state().nodes().At(node).spec;
      spec.cpu_millis = dice.Between(0, 8) * 1000;
      Register(fabric, node, std::move(spec));
    } else if (what == 6) {
      Reconnect(node);
    } else if (what < 6) {
      const JobId id = jobs[static_cast<size_t>(dice.Below(static_cast<int>(jobs.size())))];
      for (uint32_t t = 0; t < 12; ++t) {
        if (fabric.job(id).tasks[t].state == TaskState::kBound && dice.Chance(50)) {
          fabric.Report(id, t, ReportState::kExited, 0);
        }
      }
    }
  }

  // The same eight GPUs with different links.
  void Reconnect(NodeId node) {
    NodeSpec spec = fabric.state().nodes().At(node).spec;
    if (spec.devices.size() != 8) return;
    const testing::Matrix pairs{.gpus = 8, .rows = testing::BlockRows(8, 2, "NV2", "SYS")};
    spec.topology = testing::TopologyFrom(dice.Chance(50) ? testing::Dgx1() : pairs);
    Register(fabric, node, std::move(spec));
  }

  Dice dice;
  Fabric fabric;
  std::vector<JobId> jobs;
};

TEST_CASE("cached counts of nodes and domains equal a new count") {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Walk walk(seed);
    for (int round = 0; round < 15; ++round) {
      const std::vector<EventBody> decisions = walk.TryThings();
      for (const EventBody& decision : decisions) {
        if (walk.dice.Chance(70))
          (void)walk.fabric.Try(decision);  // any of them may be rejected by now
      }
      walk.Happen();
    }
  }
}

TEST_CASE("domains have room for tasks with floors where nodes report such links") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 4});
  Connect(fabric, fabric.node_id("r1n1"), testing::Dgx1());
  Connect(fabric, fabric.node_id("r2n1"), testing::Ac922());
  const auto rooms = [&](JobId job) {
    Cycle cycle(fabric.state(), fabric.policies(), fabric.now(), 1 << 30);
    const TopologyTree* tree = TreesOf(cycle).Of(fabric.state(), "network");
    const FitKey key{.shape = fabric.job(job).groups[0].shape};
    CheckFits(cycle, "network", key);
    const FitView view = FitsOf(cycle, *tree, key);
    std::vector<int64_t> of_node;
    for (const char* name : {"r1n1", "r1n2", "r2n1", "r2n2"})
      of_node.push_back(view.of_node[fabric.node_id(name).value]);
    return of_node;
  };
  const JobId pairs = SubmitFloor(fabric, 2, LinkClass::kNvlink, 0);
  CHECK(rooms(pairs) == std::vector<int64_t>{4, 0, 2, 0});
  CHECK(rooms(SubmitFloor(fabric, 4, LinkClass::kNvlink, 0)) == std::vector<int64_t>{2, 0, 0, 0});
  CHECK(rooms(SubmitFloor(fabric, 2, LinkClass::kUnknown, 400)) ==
        std::vector<int64_t>{4, 0, 2, 0});
  fabric.Occupy("r2n1", 1);  // the other GPU of its pair has no link to a free one
  CHECK(rooms(pairs) == std::vector<int64_t>{4, 0, 1, 0});
}

TEST_CASE("with more shapes than the cache, and more changes than the log, counts are repeated") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 4});
  std::vector<ShapeId> shapes;
  for (int i = 0; i < 40; ++i) {
    const JobId id = fabric.Submit(absl::StrCat("j", i), {.groups = {{.cpu = 1 + i}}});
    shapes.push_back(fabric.job(id).groups[0].shape);
  }
  Cycle cycle(fabric.state(), fabric.policies(), fabric.now(), 1 << 30);
  for (int round = 0; round < 2; ++round) {
    for (ShapeId shape : shapes) CheckFits(cycle, "network", {.shape = shape});
  }
  const JobId filler = fabric.state().next_job_id();
  (void)filler;
  const Job& job = fabric.state().jobs().At(JobId{1});
  for (int i = 0; i < 40'000; ++i) {
    const Transaction::Mark mark = cycle.transaction().mark();
    cycle.transaction().Place(job.id, {0, NodeId{static_cast<uint32_t>(1 + i % 4)}, {}});
    if (i % 3 == 0) CheckFits(cycle, "network", {.shape = shapes[0]});
    cycle.transaction().RollbackTo(mark);
  }
  CheckFits(cycle, "network", {.shape = shapes[5]});
}

}  // namespace
}  // namespace berth
