// The effect of TasksReleased on a task: the same rule for Apply and for planning ahead.
#ifndef BERTH_CORE_MODEL_RELEASE_H_
#define BERTH_CORE_MODEL_RELEASE_H_

#include <cstdint>

#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

// `index` is one of the event's tasks and occupies a node. The task is told to stop, or to move. A
// KEEP task on a lost node will never report that it is gone, so it is given up at once, unless it
// will run again: no fence ends it there, and a second attempt could run alongside it.
Task AfterRelease(const ClusterState& state, const TasksReleased& event, uint32_t index, Time now);
// The same for that task `before`; `unreachable`: its node is lost.
Task AfterRelease(const Task& before, const TasksReleased& event, uint32_t index, bool unreachable,
                  Time now);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RELEASE_H_
