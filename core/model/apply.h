// Entry point of the core: applies an event to the state.
#ifndef BERTH_CORE_MODEL_APPLY_H_
#define BERTH_CORE_MODEL_APPLY_H_

#include "absl/status/status.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

class StateEditor;

// Checks the event against the state, then changes it; on an error the state is unchanged. The
// checks protect the state's invariants (ids known and next, transitions legal, resources free at
// that node, devices unused, limits of the queue chain kept, epoch and attempt current), so every
// decision and every report is verified again. Apply records facts only. Consequences (a restart, a
// gang's start, an outcome) are decided by PlanCycle and arrive as further events.
absl::Status Apply(ClusterState& state, const Event& event);

// For a bind whose tentative edits are in place and about to become facts, among other such binds:
// returns what Apply would have returned for each in order, starting from the state before all of
// them.
absl::Status CheckBound(const ClusterState& state, const TasksBound& event, Time now);
// Makes those edits facts as Apply would have: does everything that tentative edits leave out.
void AdoptBound(StateEditor& editor, const TasksBound& event);

// The status that Apply would return for the submission. Changes nothing.
absl::Status CheckJobSubmitted(const ClusterState& state, const JobSubmitted& event);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_APPLY_H_
