// What planning keeps in the state between cycles (PlanningCache).
#ifndef BERTH_CORE_ENGINE_ENGINE_CACHE_H_
#define BERTH_CORE_ENGINE_ENGINE_CACHE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/engine/order/line_levels.h"
#include "core/engine/search/device_board.h"
#include "core/engine/search/node_marks.h"
#include "core/engine/shares/fair_share.h"
#include "core/model/state_editor.h"
#include "core/topology/domain_fits.h"
#include "core/topology/tree.h"

namespace berth {

// How many entries of PendingIndex::missed() each action has processed, by name. After a cycle that
// was cut, the next one continues there.
using MissedProgress = std::map<std::string, size_t>;

struct EngineCache final : PlanningCache {
  FairShares shares;
  NodeMarks marks;
  MissedProgress missed;
  // The action in which the budget ended, as an index in the policies' actions. Jobs that it and
  // those before it find can never fit are settled when it completes, in a later cycle.
  size_t cut_in = 0;
  TopologyTrees trees;
  DomainFits fits;
  DeviceBoard board;
  LineLevels lines;
  bool cut = false;                          // the last cycle was
  Time overtaken_at = absl::InfinitePast();  // when `lines` was last updated
};

// The state's own cache; created on first use.
inline EngineCache& CacheOf(StateEditor& editor) {
  std::unique_ptr<PlanningCache>& cache = editor.planning_cache();
  if (cache == nullptr) cache = std::make_unique<EngineCache>();
  return static_cast<EngineCache&>(*cache);
}

// The current fair shares of the state. The reference stays valid; its values change with the next
// call.
inline FairShares& FreshShares(StateEditor& editor, const ClusterState& state,
                               const FairShareParameters& parameters) {
  FairShares& shares = CacheOf(editor).shares;
  shares.Refresh(state, editor.TakeChangedQueues(), parameters);
  return shares;
}

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_ENGINE_CACHE_H_
