// Clusters with a tree of HyperNodes.
//
//   Fabric fabric;
//   fabric.AddRacks(4, 2, {.gpus = 4});       // r1 {r1n1 r1n2} .. r4, tier 1, called "rack"
//   fabric.AddAbove("p", 2, "pod", "r", 2);   // p1 {r1 r2} p2 {r3 r4}
//   const JobId gang = fabric.Ask("gang", Hard("rack"), {.replicas = 2, .gpus = 4});
//   fabric.Settle();
//   CHECK(fabric.Where(gang) == "r1n1 r1n2");
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_FABRIC_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_FABRIC_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/testing/cluster.h"

namespace berth::testing {

inline TopologyConstraint Hard(const std::string& tier_name, const std::string& kind = "network") {
  return {.mode = TopologyMode::kHard, .highest_tier_name = tier_name, .kind = kind};
}
inline TopologyConstraint HardTier(int tier, const std::string& kind = "network") {
  return {.mode = TopologyMode::kHard, .highest_tier = tier, .kind = kind};
}
inline TopologyConstraint Soft(const std::string& tier_name = "",
                               Duration patience = absl::ZeroDuration()) {
  return {.mode = TopologyMode::kSoft, .highest_tier_name = tier_name, .patience = patience};
}

class Fabric : public TestCluster {
 public:
  using TestCluster::TestCluster;

  HyperNodeId AddDomain(const std::string& name, int tier, const std::string& tier_name,
                        const std::vector<std::string>& children, const std::vector<NodeId>& nodes,
                        const std::string& kind = "network") {
    HyperNodeSpec spec{.name = name, .kind = kind, .tier = tier, .tier_name = tier_name};
    for (const std::string& child : children) {
      spec.members.push_back({.type = HyperNodeMember::Type::kHyperNode, .text = child});
    }
    const HyperNodeId id = state().next_hyper_node_id();
    Must(HyperNodeChanged{.id = id, .spec = std::move(spec)});
    if (!nodes.empty()) Must(NodesJoined{.domain = id, .nodes = nodes});
    return id;
  }
  // r1 {r1n1 r1n2 ..} .. ; nodes are added rack by rack.
  void AddRacks(int racks, int nodes, const NodeShape& shape = {}) {
    for (int r = 0; r < racks; ++r) AddRack(nodes, shape);
  }
  void AddRack(int nodes, const NodeShape& shape = {}) {
    const std::string name = absl::StrCat("r", ++racks_);
    std::vector<NodeId> ids;
    for (int n = 1; n <= nodes; ++n) ids.push_back(AddNode(absl::StrCat(name, "n", n), shape));
    AddDomain(name, 1, "rack", {}, ids);
  }
  // Adds domains above those named `below` and a number, one for every `per` of them.
  void AddAbove(const std::string& prefix, int tier, const std::string& tier_name,
                const std::string& below, int per) {
    std::vector<std::string> children;
    int made = 0;
    for (int i = 1; state().FindHyperNode(absl::StrCat(below, i)) != nullptr; ++i) {
      children.push_back(absl::StrCat(below, i));
      if (static_cast<int>(children.size()) < per) continue;
      AddDomain(absl::StrCat(prefix, ++made), tier, tier_name, std::exchange(children, {}), {});
    }
    if (!children.empty()) {
      AddDomain(absl::StrCat(prefix, ++made), tier, tier_name, children, {});
    }
  }
  void SetHealth(const std::string& name, DomainHealth health) {
    const HyperNode& domain = *state().FindHyperNode(name);
    HyperNodeSpec spec = domain.spec;
    spec.health = health;
    Must(HyperNodeChanged{.id = domain.id, .spec = std::move(spec)});
  }

  JobId SubmitSpec(JobSpec spec) {
    const JobId id = state().next_job_id();
    Must(JobSubmitted{.id = id, .spec = std::move(spec)});
    return id;
  }
  JobSpec SpecOfShape(const std::string& name, const JobShape& shape) {
    const std::string queue = shape.queue.empty() ? "default" : shape.queue;
    if (state().FindQueue(queue) == nullptr) AddQueue(queue);
    return MakeJob(name, queue_id(queue), shape);
  }
  // One group, with a constraint of the job.
  JobSpec SpecFor(const std::string& name, const TopologyConstraint& topology, GroupShape group,
                  JobShape shape = {}) {
    shape.groups = {std::move(group)};
    JobSpec spec = SpecOfShape(name, shape);
    spec.topology = topology;
    return spec;
  }
  JobId Ask(const std::string& name, const TopologyConstraint& topology, GroupShape group,
            JobShape shape = {}) {
    return SubmitSpec(SpecFor(name, topology, std::move(group), std::move(shape)));
  }
  // Runs a job of that many GPUs on the node, using exclude_nodes for all others.
  JobId Occupy(const std::string& node, int gpus, JobShape shape = {}) {
    GroupShape group{.gpus = gpus};
    group.cpu = 0;
    const NodeId only = node_id(node);
    state().nodes().ForEach([&](NodeId id, const Node& other) {
      if (id != only) group.exclude_nodes.push_back(other.spec.name);
    });
    std::sort(group.exclude_nodes.begin(), group.exclude_nodes.end());
    shape.groups = {std::move(group)};
    const JobId id = Submit(absl::StrCat("fill-", ++filled_), shape);
    RunAll(id);
    return id;
  }

  // The lowest tier at which one domain of the kind holds all occupying tasks; 1000: the root.
  int TierOf(JobId id, const std::string& kind = "network") const {
    std::vector<HyperNodeId> common;
    bool first = true;
    for (const Task& task : job(id).tasks) {
      if (!Occupies(task.state)) continue;
      std::vector<HyperNodeId> chain = ChainOf(task.node, kind);
      if (std::exchange(first, false)) {
        common = std::move(chain);
        continue;
      }
      std::erase_if(common, [&](HyperNodeId d) {
        return std::find(chain.begin(), chain.end(), d) == chain.end();
      });
    }
    return common.empty() ? 1000 : state().hyper_nodes().At(common.front()).spec.tier;
  }
  // Racks (or other domains that nodes joined) of the tasks, without repeats: "r1 r3".
  std::string Racks(JobId id) const {
    std::set<std::string> names;
    for (const Task& task : job(id).tasks) {
      if (!Occupies(task.state) && !Reserves(task.state)) continue;
      const HyperNode* domain = state().DomainOf(state().nodes().At(task.node), "network");
      names.insert(domain == nullptr ? "-" : domain->spec.name);
    }
    return absl::StrJoin(names, " ");
  }

  std::vector<HyperNodeId> ChainOf(NodeId node, const std::string& kind) const {
    std::vector<HyperNodeId> chain;
    const HyperNode* at = state().DomainOf(state().nodes().At(node), kind);
    while (at != nullptr) {
      chain.push_back(at->id);
      at = state().hyper_nodes().Find(at->parent);
    }
    return chain;
  }

 private:
  int racks_ = 0;
  int filled_ = 0;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_FABRIC_H_
