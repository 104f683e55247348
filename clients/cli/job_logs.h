// berth job logs.
#ifndef BERTH_CLIENTS_CLI_JOB_LOGS_H_
#define BERTH_CLIENTS_CLI_JOB_LOGS_H_

#include "clients/cli/command.h"

namespace berth {

// Prints the output of all tasks that have started, until they end, as berth job logs -f.
ExitCode FollowOutput(Session& session, const std::string& job);

void AddJobLogs(CLI::App& noun, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_LOGS_H_
