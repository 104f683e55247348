// berth job ended: jobs that have ended, also those that the server has deleted.
#ifndef BERTH_CLIENTS_CLI_JOB_ENDED_H_
#define BERTH_CLIENTS_CLI_JOB_ENDED_H_

#include "clients/cli/command.h"

namespace berth {

void AddJobEnded(CLI::App& noun, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_ENDED_H_
