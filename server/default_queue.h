// The queue `default`, which a new cluster has.
#ifndef BERTH_SERVER_DEFAULT_QUEUE_H_
#define BERTH_SERVER_DEFAULT_QUEUE_H_

#include "absl/status/status.h"
#include "server/loop.h"

namespace berth {

// Has the loop make it, if no queue was ever made in this store. From then on it is a queue like
// any other: an operator may change or delete it, and it does not come back. Before the first turn.
absl::Status MakeDefaultQueue(Loop& loop);

}  // namespace berth

#endif  // BERTH_SERVER_DEFAULT_QUEUE_H_
