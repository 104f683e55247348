#include "server/commands/default_queue.h"

#include <string>

#include "server/convert/queue.h"
#include "support/log.h"

namespace berth {
namespace {

bool NoneYet(const ClusterState& state) {
  return state.next_queue_id() == QueueId{kRootQueue.value + 1};
}

}  // namespace

bool HadNoQueues(Loop& loop) {
  return loop.Read([](const ClusterState& state, uint64_t) { return NoneYet(state); });
}

absl::Status MakeDefaultQueue(Loop& loop) {
  if (!HadNoQueues(loop)) return absl::OkStatus();
  return loop.Post([](Turn& turn) {
    if (!NoneYet(turn.state())) return;
    turn.By({.door = Door::kServer, .method = "start"});
    QueueSpec spec;
    spec.name = std::string(kDefaultQueueName);
    const absl::Status made = turn.Emit(QueueCreated{turn.state().next_queue_id(), spec});
    if (made.ok()) LogInfo("queue created", {{"queue", spec.name}, {"why", "the store is new"}});
    if (!made.ok()) LogError("the default queue cannot be created", {{"error", made}});
  });
}

}  // namespace berth
