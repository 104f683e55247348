// Why a gang with a topology constraint waits, and what would start it.
#include "core/engine/explain/explain.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::GroupShape;
using testing::Hard;
using testing::Soft;

GroupShape Whole(int replicas) { return {.replicas = replicas, .cpu = 0, .gpus = 4}; }

Explanation ExplainFor(Fabric& fabric, JobId id) {
  return Explain(fabric.state(), fabric.policies(), id, fabric.now());
}
const ConstraintCount* Count(const GroupConstraints& group, const std::string& name) {
  for (const ConstraintCount& count : group.constraints) {
    if (count.name == name) return &count;
  }
  return nullptr;
}
const Remedy* Find(const Explanation& explanation, RemedyKind kind) {
  for (const Remedy& remedy : explanation.remedies) {
    if (remedy.kind == kind) return &remedy;
  }
  return nullptr;
}
std::string NameOf(const Fabric& fabric, HyperNodeId id) {
  return fabric.state().hyper_nodes().At(id).spec.name;
}

TEST_CASE("which domains hold how many tasks, and the wider tier that would hold all") {
  Fabric fabric;
  fabric.AddRacks(4, 4, {.gpus = 4});
  fabric.AddAbove("p", 2, "pod", "r", 2);
  for (const char* node : {"r1n1", "r2n1", "r2n2", "r3n1", "r4n1"}) fabric.Occupy(node, 4);
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(4));
  fabric.Settle();
  const Explanation explanation = ExplainFor(fabric, gang);
  REQUIRE(explanation.topology.size() == 1);
  const ScopeFit& fit = explanation.topology[0];
  CHECK(fit.level == ScopeFit::Level::kJob);
  CHECK(fit.highest_tier == 1);
  CHECK(fit.needed_tasks == 4);
  CHECK(fit.domains == 4);
  CHECK(fit.domains_now == 0);
  CHECK(fit.domains_empty == 4);
  REQUIRE(fit.best.size() == 4);
  CHECK(NameOf(fabric, fit.best[0].domain) == "r1");
  CHECK(fit.best[0].fit_now == 3);
  CHECK(NameOf(fabric, fit.best[3].domain) == "r2");
  CHECK(fit.best[3].fit_now == 2);

  REQUIRE(explanation.groups.size() == 1);
  const ConstraintCount* topology = Count(explanation.groups[0], "topology");
  REQUIRE(topology != nullptr);
  CHECK(topology->nodes_alone == 0);
  CHECK(explanation.groups[0].tasks_left == 3);
  CHECK(explanation.groups[0].blocking == std::vector<std::string>{"topology", "free"});

  const Remedy* wider = Find(explanation, RemedyKind::kWiderTier);
  REQUIRE(wider != nullptr);
  CHECK(wider->value == 2);
  CHECK(wider->text == "pod");
  CHECK(wider->starts_now);
  CHECK(Find(explanation, RemedyKind::kSoftTopology) == nullptr);
  const Remedy* fewer = Find(explanation, RemedyKind::kFewerTasks);
  REQUIRE(fewer != nullptr);
  CHECK(fewer->value == 3);
  // The dry run leaves no trace.
  CHECK(fabric.Settle().empty());
}

TEST_CASE("if no rack could hold a gang, topology excludes all nodes") {
  Fabric fabric;
  fabric.AddRacks(2, 2, {.gpus = 4});
  fabric.AddNode("loose", {.gpus = 4});
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(3));
  fabric.Settle();
  const Explanation explanation = ExplainFor(fabric, gang);
  const ConstraintCount* topology = Count(explanation.groups[0], "topology");
  REQUIRE(topology != nullptr);
  CHECK(topology->nodes_alone == 5);
  CHECK(explanation.groups[0].blocking == std::vector<std::string>{"topology"});
  CHECK(explanation.groups[0].nodes_left == 0);
  CHECK(explanation.topology[0].domains_empty == 0);
  CHECK(explanation.topology[0].lowest_tier_empty == kRootTier);
  CHECK(Find(explanation, RemedyKind::kWiderTier) == nullptr);
  const Remedy* soft = Find(explanation, RemedyKind::kSoftTopology);
  REQUIRE(soft != nullptr);
  CHECK(soft->starts_now);
}

TEST_CASE("constraints of groups and partitions are reported separately") {
  Fabric fabric;
  fabric.AddRacks(2, 3, {.gpus = 4});
  for (const char* node : {"r1n1", "r2n1", "r2n2"}) fabric.Occupy(node, 4);
  JobSpec spec = fabric.SpecFor("gang", Soft(), Whole(4));
  spec.groups[0].partition_size = 2;
  spec.groups[0].partition_topology = Hard("rack");
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.Settle();
  const Explanation explanation = ExplainFor(fabric, gang);
  REQUIRE(explanation.topology.size() == 2);
  CHECK(explanation.topology[0].level == ScopeFit::Level::kJob);
  const ScopeFit& parts = explanation.topology[1];
  CHECK(parts.level == ScopeFit::Level::kPartition);
  CHECK(parts.needed_tasks == 2);
  CHECK(parts.domains_now == 1);
  CHECK(NameOf(fabric, parts.best[0].domain) == "r1");
  const Remedy* soft = Find(explanation, RemedyKind::kSoftTopology);
  CHECK(soft == nullptr);  // there are three nodes for four tasks
}

TEST_CASE("nested: no rack can hold a partition, although the cluster could") {
  Fabric fabric;
  fabric.AddRacks(2, 3, {.gpus = 4});
  for (const char* node : {"r1n1", "r2n1"}) fabric.Occupy(node, 4);
  JobSpec spec = fabric.SpecFor("gang", {}, Whole(4));
  spec.groups[0].partition_size = 4;
  spec.groups[0].partition_topology = Hard("rack");
  const JobId gang = fabric.SubmitSpec(spec);
  fabric.Settle();
  CHECK(fabric.Why(gang)[0].code == WaitCode::kNeverFits);
  const Explanation explanation = ExplainFor(fabric, gang);
  const Remedy* soft = Find(explanation, RemedyKind::kSoftTopology);
  REQUIRE(soft != nullptr);
  CHECK(soft->level == ScopeFit::Level::kPartition);
  CHECK(soft->starts_now);
}

}  // namespace
}  // namespace berth
