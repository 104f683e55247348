// berth man: prints the manual pages of this program.
#ifndef BERTH_CLIENTS_CLI_MAN_COMMAND_H_
#define BERTH_CLIENTS_CLI_MAN_COMMAND_H_

#include <CLI/CLI.hpp>

#include "clients/cli/session.h"

namespace berth {

// Add it last; both arguments must outlive parsing.
void AddManCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MAN_COMMAND_H_
