// Formats the shares of the queues for people.
#ifndef BERTH_CLIENTS_CLI_SHARE_VIEW_H_
#define BERTH_CLIENTS_CLI_SHARE_VIEW_H_

#include "berth/v1/queue.pb.h"
#include "clients/cli/session.h"

namespace berth {

// A tree of queues with a row for each resource that has an amount there.
Table ShareTable(const v1::ListQueueSharesResponse& shares);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_SHARE_VIEW_H_
