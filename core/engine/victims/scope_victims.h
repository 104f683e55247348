// Victims for a gang of which several domains must each hold a part, because of hard constraints of
// its groups or partitions. Before the whole gang is planned, domains are chosen for each part by
// counts, in the order of DomainOptions: as many as would hold it without all possible victims. All
// victims are then in these domains. If such a plan fails, because parts compete for a domain or
// the counts promised too much, twice as many domains are chosen, and so on.
//
//   racks a {2 may go} b {1 free, 1 may go} c {1 free, 1 may go}, two partitions of 2, each in a
//   rack: b and c, so that two go; not the two of a, and one besides, though they come first
//
// A plan with victims from anywhere is made as well, and the cheaper one is decided (VictimCost).
// So choosing domains never costs more victims. If no domain could hold some part, there is no
// plan.
#ifndef BERTH_CORE_ENGINE_VICTIMS_SCOPE_VICTIMS_H_
#define BERTH_CORE_ENGINE_VICTIMS_SCOPE_VICTIMS_H_

#include "core/engine/victims/victim_plan.h"

namespace berth {

inline constexpr int kMaxWidenings = 4;

// For a job with constraints none of which covers all that is to be placed. Decides a plan if there
// is one; otherwise leaves the state unchanged.
VictimOutcome PlanScopeVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_SCOPE_VICTIMS_H_
