// Small sets of units that could make room for a gang instead of the larger set that a plan found.
//
//   n1: A A A A (one GPU each)   n2: B B (two each)   gang of one task of 4, candidates A1..A4 B1
//   B2 the plan takes A1..A4, who come first;   FewUnits: {B1, B2}, all of equal loss, and fewer
//   jobs
#ifndef BERTH_CORE_ENGINE_VICTIMS_FEW_UNITS_H_
#define BERTH_CORE_ENGINE_VICTIMS_FEW_UNITS_H_

#include <cstddef>
#include <vector>

#include "core/engine/place/placer.h"
#include "core/engine/victims/victim_units.h"
#include "core/model/cluster_state.h"

namespace berth {

// From units[first] on: each unit that alone covers what is missing in total; and for each node,
// the largest units that make room for the whole gang there. Ascending indexes in `units`. By
// amounts only, so each set must be tried. O(n log n) for n units.
std::vector<std::vector<size_t>> FewUnits(const ClusterState& state, const Resources& request,
                                          const std::vector<VictimUnit>& units, size_t first);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_FEW_UNITS_H_
