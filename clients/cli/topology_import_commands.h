// `berth topology import`: HyperNodes from files of other systems (clients/cli/topology).
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_COMMANDS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_COMMANDS_H_

#include "clients/cli/command.h"

namespace berth {

// Adds it to the noun `topology`, which is created if it does not exist. `session` must outlive
// `app`.
void AddTopologyImportCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_COMMANDS_H_
