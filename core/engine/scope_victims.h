// Victims for a gang of which several domains each must hold a part, by hard constraints of its
// groups or partitions. Before a plan is made for the whole, domains are chosen for each part by
// counts, in the order of DomainOptions, as many as hold it if all who may go had gone; and whoever
// goes for the gang is in one of these. Where such a plan fails, as parts compete for the same
// domain or counts promised too much, twice as many are chosen, and so on.
//
//   racks a {2 may go} b {1 free, 1 may go} c {1 free, 1 may go}, two partitions of 2, each in a
//   rack: b and c, so that two go; not the two of a, and one besides, though they come first
//
// The plan that takes from anywhere is made as well, and the one that costs less is decided
// (VictimCost): so choosing is never to a victim's harm. Where no domain could hold some part,
// there is no plan.
#ifndef BERTH_CORE_ENGINE_SCOPE_VICTIMS_H_
#define BERTH_CORE_ENGINE_SCOPE_VICTIMS_H_

#include "core/engine/victim_plan.h"

namespace berth {

inline constexpr int kMaxWidenings = 4;

// Of a job with constraints none of which holds all that is to be placed. Decides a plan if there
// is one; else the state is as before.
VictimOutcome PlanScopeVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SCOPE_VICTIMS_H_
