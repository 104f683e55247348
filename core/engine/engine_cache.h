// What planning keeps in the state from cycle to cycle (PlanningCache).
#ifndef BERTH_CORE_ENGINE_ENGINE_CACHE_H_
#define BERTH_CORE_ENGINE_ENGINE_CACHE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/engine/device_board.h"
#include "core/engine/fair_share.h"
#include "core/engine/line_levels.h"
#include "core/engine/node_marks.h"
#include "core/model/state_editor.h"
#include "core/topology/domain_fits.h"
#include "core/topology/tree.h"

namespace berth {

// How many of PendingIndex::missed() each action has dealt with, by name. A cycle that was cut goes
// on from there.
using MissedProgress = std::map<std::string, size_t>;

struct EngineCache final : PlanningCache {
  FairShares shares;
  NodeMarks marks;
  MissedProgress missed;
  // The action in which the budget ended, as an index in the policies' actions. What it and those
  // before it find that can never fit is settled once it is through, in a later cycle.
  size_t cut_in = 0;
  TopologyTrees trees;
  DomainFits fits;
  DeviceBoard board;
  LineLevels lines;
  bool cut = false;                          // the last cycle was
  Time overtaken_at = absl::InfinitePast();  // when `lines` was followed last
};

// The state's own; made when first asked for.
inline EngineCache& CacheOf(StateEditor& editor) {
  std::unique_ptr<PlanningCache>& cache = editor.planning_cache();
  if (cache == nullptr) cache = std::make_unique<EngineCache>();
  return static_cast<EngineCache&>(*cache);
}

// The fair shares that the state has now. The reference stays good; its values change with the next
// call.
inline FairShares& FreshShares(StateEditor& editor, const ClusterState& state,
                               const FairShareParameters& parameters) {
  FairShares& shares = CacheOf(editor).shares;
  shares.Refresh(state, editor.TakeChangedQueues(), parameters);
  return shares;
}

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_ENGINE_CACHE_H_
