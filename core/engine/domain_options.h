// DomainOptions: where victims could make room for tasks of a gang that one domain must hold, by
// counts alone, and in which order these domains are worth a plan.
//
// Who may go at all is put into levels: 0, nobody but what is being released; then by priority,
// lowest first, each level with those before it. A domain's level is the first at which it would
// hold them if all of that level were gone. Where none does, nobody goes; so a domain that
// cannot help costs one look at its nodes, and no plan.
//
//   gang of 4 in one rack    rack a: 3 free, priorities 5        level 2 (0, 1 and 5)
//                            rack b: none free, priorities 1     level 1: goes first
//                            rack c: none free, nobody may go    none
//
// Order: the lowest tier, healthy before degraded, the lowest level, most of them fits already.
// Those that are alike in all of this are to be compared by their plans.
#ifndef BERTH_CORE_ENGINE_DOMAIN_OPTIONS_H_
#define BERTH_CORE_ENGINE_DOMAIN_OPTIONS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/engine/victim_plan.h"
#include "core/topology/scope.h"

namespace berth {

class DomainOptions {
 public:
  // Of more priorities, neighbours share a level.
  static constexpr size_t kMaxLevels = 8;

  struct Option {
    DomainIndex domain = kRootDomain;
    int32_t tier = 0;
    bool degraded = false;
    size_t level = 0;
    int64_t fits = 0;   // already: tasks
    int64_t units = 0;  // of the first need, at its level
    HyperNodeId id;
    bool AsGoodAs(const Option& other) const {
      return tier == other.tier && degraded == other.degraded && level == other.level &&
             fits == other.fits;
    }
  };

  // What a domain must hold, and of which domains of the tree it may be one. `source` says who
  // could be handed out (VictimSource::CouldGive). Both are asked while this is made only.
  DomainOptions(Cycle& cycle, const VictimPlanGoal& goal, const TopologyTree& tree,
                std::vector<UnitNeed> needs, absl::FunctionRef<bool(DomainIndex)> may,
                const VictimSource& source);

  const std::vector<Option>& in_order() const { return options_; }
  // When one that is protected for its age may be taken.
  Time protected_until() const { return protected_until_; }

 private:
  // Of a job, by task: that it may go, with which priority, and from which level on (0: it may
  // not). Empty: none may.
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
  // kMaxLevels + 1: at none.
  size_t LevelOf(DomainIndex domain) const;

  Cycle& cycle_;
  const ClusterState& state_;
  const VictimPlanGoal& goal_;
  const TopologyTree& tree_;
  const bool leave_out_;  // degraded domains
  const std::vector<UnitNeed> needs_;
  absl::flat_hash_map<JobId, MayLeave> may_leave_;  // looked up only
  size_t levels_ = 1;
  std::vector<std::vector<DomainRoom>> rooms_;  // by level, then by need
  std::vector<Option> options_;
  Time protected_until_ = absl::InfiniteFuture();
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DOMAIN_OPTIONS_H_
