// The first door of the core: what an event does to the state.
#ifndef BERTH_CORE_MODEL_APPLY_H_
#define BERTH_CORE_MODEL_APPLY_H_

#include "absl/status/status.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

class StateEditor;

// Checks the event against the state, then changes it; on an error the state is untouched. The
// checks are those that keep the state whole (ids known and next, transitions legal, resources free
// at that node, devices unused, limits of the queue chain kept, the epoch and attempt current): a
// second pair of eyes on every decision and every report. Apply records facts only; what follows
// from them (a restart, a gang's start, an outcome) is decided by PlanCycle and arrives as further
// events.
absl::Status Apply(ClusterState& state, const Event& event);

// For a bind whose effect stands already, as tentative edits that are about to become facts, among
// others like it: what Apply would have said to it, in their order, on the state before them all.
absl::Status CheckBound(const ClusterState& state, const TasksBound& event, Time now);
// Marks that effect as Apply would have: all that facts entail and tentative edits do not.
void AdoptBound(StateEditor& editor, const TasksBound& event);

// What Apply would say to that submit. Changes nothing.
absl::Status CheckJobSubmitted(const ClusterState& state, const JobSubmitted& event);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_APPLY_H_
