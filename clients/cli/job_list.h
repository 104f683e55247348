// berth job list.
#ifndef BERTH_CLIENTS_CLI_JOB_LIST_H_
#define BERTH_CLIENTS_CLI_JOB_LIST_H_

#include "clients/cli/command.h"

namespace berth {

void AddJobList(CLI::App& noun, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_LIST_H_
