// What TasksReleased makes of a task: the one rule for Apply and for planning ahead.
#ifndef BERTH_CORE_MODEL_RELEASE_H_
#define BERTH_CORE_MODEL_RELEASE_H_

#include <cstdint>

#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

// `index` is one of the event's tasks, and occupies a node. Told to stop, or to move. Kept on a
// node that is lost, and so will not say any more that it is gone: given up at once, unless it is
// to run again; no fence ends it there, and a second attempt could run beside it.
Task AfterRelease(const ClusterState& state, const TasksReleased& event, uint32_t index, Time now);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RELEASE_H_
