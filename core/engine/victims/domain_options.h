// DomainOptions: in which domains victims could make room for tasks of a gang that must stay in one
// domain, by counts alone, and in which order these domains are worth a plan.
//
// Possible victims are divided into levels: 0 is only what is being released already; then by
// priority, lowest first, each level including those before it. A domain's level is the first at
// which the tasks would fit if that whole level were gone. A domain without such a level is
// skipped: it costs one pass over its nodes, and no plan.
//
//   gang of 4 in one rack    rack a: 3 free, priorities 5        level 2 (0, 1 and 5)
//                            rack b: none free, priorities 1     level 1: goes first
//                            rack c: none free, no victims       none
//
// Order: lowest tier, healthy before degraded, lowest level, most tasks that fit already. Domains
// that are equal in all of these are compared by their plans.
#ifndef BERTH_CORE_ENGINE_VICTIMS_DOMAIN_OPTIONS_H_
#define BERTH_CORE_ENGINE_VICTIMS_DOMAIN_OPTIONS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/engine/victims/victim_plan.h"
#include "core/topology/scope.h"

namespace berth {

class DomainOptions {
 public:
  // With more priorities, neighbors share a level.
  static constexpr size_t kMaxLevels = 8;

  struct Option {
    DomainIndex domain = kRootDomain;
    int32_t tier = 0;
    bool degraded = false;
    size_t level = 0;
    int64_t fits = 0;   // tasks that fit already
    int64_t units = 0;  // of the first need, at its level
    HyperNodeId id;
    bool AsGoodAs(const Option& other) const {
      return tier == other.tier && degraded == other.degraded && level == other.level &&
             fits == other.fits;
    }
  };

  // What a domain must hold, and which domains of the tree are allowed. `source` decides who could
  // be a victim (VictimSource::CouldGive). Both are called only during construction.
  DomainOptions(Cycle& cycle, const VictimPlanGoal& goal, const TopologyTree& tree,
                std::vector<UnitNeed> needs, absl::FunctionRef<bool(DomainIndex)> may,
                const VictimSource& source);

  const std::vector<Option>& in_order() const { return options_; }
  // When a victim's age protection ends.
  Time protected_until() const { return protected_until_; }

 private:
  // For each task of a job: whether it may be evicted, its priority, and from which level on (0:
  // never). Empty: none may be.
  struct MayLeave {
    std::vector<bool> may;
    std::vector<int32_t> priority;
    std::vector<size_t> level;
  };
  void FindWhoMayLeave(const VictimSource& source);
  void AddUnits(const Job& job, const VictimSource& source, const std::vector<VictimUnit>& units,
                MayLeave* may) const;
  void PutIntoLevels();
  void CountRoom();
  size_t LevelAtWhichGone(TaskKey key) const;
  void CountNode(NodeId id, const FitKey& key, std::vector<std::vector<int64_t>>* of_domain) const;
  void PutInOrder(absl::FunctionRef<bool(DomainIndex)> may);
  // kMaxLevels + 1: at no level.
  size_t LevelOf(DomainIndex domain) const;

  Cycle& cycle_;
  const ClusterState& state_;
  const VictimPlanGoal& goal_;
  const TopologyTree& tree_;
  const bool skip_degraded_;  // degraded domains
  const std::vector<UnitNeed> needs_;
  absl::flat_hash_map<JobId, MayLeave> may_leave_;  // looked up only
  size_t levels_ = 1;
  std::vector<std::vector<DomainRoom>> rooms_;  // by level, then by need
  std::vector<Option> options_;
  Time protected_until_ = absl::InfiniteFuture();
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_DOMAIN_OPTIONS_H_
