#include "core/engine/search/neighbours.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// Which groups of the job have tasks there.
using Groups = absl::InlinedVector<bool, 8>;

void AddOn(const Job& job, const Node& node, Groups* there) {
  for (TaskKey key : node.tasks) {
    if (key.job != job.id || Releasing(job.tasks[key.task])) continue;
    (*there)[GroupOf(job, key.task)] = true;
  }
  for (TaskKey key : node.nominated) {
    if (key.job == job.id) (*there)[GroupOf(job, key.task)] = true;
  }
}

void AddBelow(const TopologyTree& tree, DomainIndex domain, const Job& job, Groups* there) {
  for (uint32_t index = 0; index < job.tasks.size(); ++index) {
    const Task& task = job.tasks[index];
    const bool here = Occupies(task.state) && !Releasing(task) && tree.Holds(domain, task.node);
    const bool soon = Reserves(task.state) && tree.Holds(domain, task.node);
    const bool moves = task.moves && tree.Holds(domain, task.next_node);
    if (here || soon || moves) (*there)[GroupOf(job, index)] = true;
  }
}

class Places {
 public:
  Places(const ClusterState& state, TopologyTrees& trees, const Job& job, const Node& node)
      : state_(state), trees_(trees), job_(job), node_(node) {}

  const Groups& At(int32_t tier) {
    const auto known = std::find_if(known_.begin(), known_.end(),
                                    [&](const Known& one) { return one.tier == tier; });
    if (known != known_.end()) return known->there;
    Known fresh{tier, Groups(job_.groups.size(), false)};
    const TopologyTree* tree = tier > 0 ? trees_.Of(state_, kNetworkKind) : nullptr;
    const auto domain = tree == nullptr ? std::nullopt : tree->DomainAt(node_.id, tier);
    if (domain.has_value()) {
      AddBelow(*tree, *domain, job_, &fresh.there);
    } else {
      AddOn(job_, node_, &fresh.there);
    }
    known_.push_back(std::move(fresh));
    return known_.back().there;
  }

 private:
  struct Known {
    int32_t tier;
    Groups there;
  };
  const ClusterState& state_;
  TopologyTrees& trees_;
  const Job& job_;
  const Node& node_;
  absl::InlinedVector<Known, 2> known_;
};

}  // namespace

bool HasNearOrApartGroups(const Job& job) {
  return std::any_of(job.groups.begin(), job.groups.end(), [](const Group& group) {
    return !group.near_groups.empty() || !group.apart_from.empty();
  });
}

bool Names(const std::vector<uint32_t>& groups, uint32_t group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

bool AffinityAllows(const ClusterState& state, TopologyTrees& trees, const Job& job, uint32_t group,
                    const Node& node) {
  Places places(state, trees, job, node);
  const Group& own = job.groups[group];
  for (uint32_t other = 0; other < job.groups.size(); ++other) {
    const bool away = Names(own.apart_from, other);
    const bool near = Names(own.near_groups, other) && other != group;
    if (away && places.At(own.affinity_tier)[other]) return false;
    if (near && !places.At(own.affinity_tier)[other]) return false;
    const Group& theirs = job.groups[other];
    if (Names(theirs.apart_from, group) && places.At(theirs.affinity_tier)[other]) return false;
  }
  return true;
}

}  // namespace berth
