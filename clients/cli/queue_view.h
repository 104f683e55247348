// Formats queues for people, as a tree.
#ifndef BERTH_CLIENTS_CLI_QUEUE_VIEW_H_
#define BERTH_CLIENTS_CLI_QUEUE_VIEW_H_

#include <string>

#include "clients/cli/output.h"

namespace berth {

Shape<v1::Queue> QueueShape();
std::string DescribeQueue(const v1::Queue& queue, const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_QUEUE_VIEW_H_
