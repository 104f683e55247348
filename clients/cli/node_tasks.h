// The tasks on a node.
#ifndef BERTH_CLIENTS_CLI_NODE_TASKS_H_
#define BERTH_CLIENTS_CLI_NODE_TASKS_H_

#include <string>

#include "clients/cli/command.h"

namespace berth {

// "berth node tasks NAME...".
void AddNodeTasks(CLI::App& noun, Session& session);

// The tasks on the node now: from Bound to Releasing, and Lost.
absl::StatusOr<v1::ListTasksResponse> TasksOfNode(Session& session, const std::string& node);
// At most `most` tasks, by job.
Table NodeTaskTable(const v1::ListTasksResponse& tasks, size_t most, const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_NODE_TASKS_H_
