// berth job history: jobs that have ended, for berth-sim replay (docs/developers/replay.md).
#ifndef BERTH_CLIENTS_CLI_JOB_HISTORY_H_
#define BERTH_CLIENTS_CLI_JOB_HISTORY_H_

#include "clients/cli/command.h"

namespace berth {

void AddJobHistory(CLI::App& noun, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_HISTORY_H_
