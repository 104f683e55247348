// What a log entry tells watchers beside the event: names, and the states that followed. History is
// rendered from the log alone, long after the objects are gone.
#ifndef BERTH_STORAGE_EVENT_LABELS_H_
#define BERTH_STORAGE_EVENT_LABELS_H_

#include <string>
#include <utility>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth::store::v1 {
class LogEvent;
}  // namespace berth::store::v1

namespace berth {

// What can only be seen before the event is applied: the names of what it deletes, and which tasks
// sat on a node.
struct LabelsBefore {
  std::string name;
  std::vector<std::pair<TaskKey, TaskState>> tasks;  // in key order
};
LabelsBefore LookBefore(const ClusterState& state, const EventBody& event);

// Fills names, states and task changes; `after` is the state once the event was applied.
void LabelEvent(const ClusterState& after, const EventBody& event, const LabelsBefore& before,
                store::v1::LogEvent* message);

}  // namespace berth

#endif  // BERTH_STORAGE_EVENT_LABELS_H_
