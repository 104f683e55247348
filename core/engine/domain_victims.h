// Victims for a gang that a hard topology constraint keeps in one domain: whoever goes for it goes
// from one domain, in which the gang is then placed. Domains are tried in the order of
// DomainOptions; of those that it holds alike, up to kMaxCompared with a plan are compared, and
// that is decided which costs least (VictimCost). So nobody goes for a gang that no domain can
// hold.
//
//   racks a {1 of 4 free} b {3 of 4 free}, gang of 4 in one rack: one has to go, from b
//
// Bounds: a domain in which the gang was placed for a try, in vain or not, counts towards
// kMaxTried; one that the victims' own rules or the counts deny, towards kMaxLookedAt.
//
// Gangs of which several domains each must hold a part: core/engine/scope_victims.h. Those without
// a hard constraint are planned for as a whole (VictimPlan).
#ifndef BERTH_CORE_ENGINE_DOMAIN_VICTIMS_H_
#define BERTH_CORE_ENGINE_DOMAIN_VICTIMS_H_

#include "core/engine/victim_plan.h"

namespace berth {

inline constexpr int kMaxLookedAt = 256;
inline constexpr int kMaxTried = 16;
inline constexpr int kMaxCompared = 4;  // plans for equally good ones
// Of a gang, for a plan to look for fewer victims as if nobody had gone yet.
inline constexpr int kMaxTasksCompared = 16;

// Decides a plan if there is one; else the state is as before.
VictimOutcome PlanVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DOMAIN_VICTIMS_H_
