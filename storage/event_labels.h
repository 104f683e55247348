// What a log entry adds to the event for watchers: names, and the resulting states. History is
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

// What is visible only before the event is applied: names of objects that it deletes, and the tasks
// on a node.
struct LabelsBefore {
  std::string name;
  QueueId seen_in;    // LogEvent.seen_in
  std::string owner;  // of a deleted job
  std::vector<std::pair<TaskKey, TaskState>> tasks;  // in key order
};
LabelsBefore LookBefore(const ClusterState& state, const EventBody& event);

// Fills names, states and task changes. `after` is the state after the event.
void LabelEvent(const ClusterState& after, const EventBody& event, const LabelsBefore& before,
                store::v1::LogEvent* message);

}  // namespace berth

#endif  // BERTH_STORAGE_EVENT_LABELS_H_
