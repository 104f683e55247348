// The queue `default` of a new cluster.
#ifndef BERTH_SERVER_COMMANDS_DEFAULT_QUEUE_H_
#define BERTH_SERVER_COMMANDS_DEFAULT_QUEUE_H_

#include "absl/status/status.h"
#include "server/loop/loop.h"

namespace berth {

// Has the loop create it if no queue was ever created in this store. From then on it is a queue
// like any other: an operator may change or delete it, and it does not come back. Call before the
// first turn.
absl::Status MakeDefaultQueue(Loop& loop);
// No queue was ever created.
bool HadNoQueues(Loop& loop);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_DEFAULT_QUEUE_H_
