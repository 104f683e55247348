// Victims for a gang that a hard topology constraint keeps in one domain: all victims come from the
// domain in which the gang is then placed. Domains are tried in the order of DomainOptions. Among
// equal ones, up to kMaxCompared plans are compared, and the one with the lowest cost (VictimCost)
// is decided. So nothing is evicted for a gang that no domain can hold.
//
//   racks a {1 of 4 free} b {3 of 4 free}, gang of 4 in one rack: one task is evicted, from b
//
// Bounds: a domain in which placing the gang was tried, successfully or not, counts towards
// kMaxTried; one that the rules for victims or the counts rule out, towards kMaxLookedAt.
//
// core/engine/victims/scope_victims.h handles gangs of which several domains must each hold a part.
// Gangs without a hard constraint are planned as a whole (VictimPlan).
#ifndef BERTH_CORE_ENGINE_VICTIMS_DOMAIN_VICTIMS_H_
#define BERTH_CORE_ENGINE_VICTIMS_DOMAIN_VICTIMS_H_

#include "core/engine/victims/victim_plan.h"

namespace berth {

inline constexpr int kMaxLookedAt = 256;
inline constexpr int kMaxTried = 16;
inline constexpr int kMaxCompared = 4;  // plans for equally good domains
// The largest gang for which a plan compares all victims again (VictimPlan::CompareWith).
inline constexpr int kMaxTasksCompared = 16;

// Decides a plan if there is one; otherwise leaves the state unchanged.
VictimOutcome PlanVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_DOMAIN_VICTIMS_H_
