// What a plan comes to that has no victim at all. VictimPlan finds that out itself, but for classes
// that no job could make room for, and there may be very many, this is the whole question.
#ifndef BERTH_CORE_ENGINE_VICTIMS_WITHOUT_VICTIMS_H_
#define BERTH_CORE_ENGINE_VICTIMS_WITHOUT_VICTIMS_H_

#include <optional>

#include "core/engine/cycle.h"
#include "core/engine/shares/queue_bounds.h"
#include "core/engine/victims/victim_plan.h"

namespace berth {

// The outcome of PlanVictims with a source that hands out nothing. nullopt if only a plan shows it:
// something is being released, the job has topology constraints or fits now, or a gang would have
// to be placed to count its tasks.
std::optional<VictimOutcome> OutcomeWithoutVictims(Cycle& cycle, const Job& job,
                                                   const JobNeeds& needs, Borrowing borrowing);

// No running job may give anything to others.
bool NobodyGives(const ClusterState& state);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_WITHOUT_VICTIMS_H_
