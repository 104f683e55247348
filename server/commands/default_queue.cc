#include "server/commands/default_queue.h"

#include <string>

#include "server/convert/queue.h"
#include "support/log.h"

namespace berth {

absl::Status MakeDefaultQueue(Loop& loop) {
  const auto none_yet = [](const ClusterState& state) {
    return state.next_queue_id() == QueueId{kRootQueue.value + 1};
  };
  const bool is_new =
      loop.Read([&](const ClusterState& state, uint64_t) { return none_yet(state); });
  if (!is_new) return absl::OkStatus();
  return loop.Post([none_yet](Turn& turn) {
    if (!none_yet(turn.state())) return;
    turn.By({.door = Door::kServer, .method = "start"});
    QueueSpec spec;
    spec.name = std::string(kDefaultQueueName);
    const absl::Status made = turn.Emit(QueueCreated{turn.state().next_queue_id(), spec});
    if (made.ok()) LogInfo("queue created", {{"queue", spec.name}, {"why", "the store is new"}});
    if (!made.ok()) LogError("the default queue cannot be created", {{"error", made}});
  });
}

}  // namespace berth
