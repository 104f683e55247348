// berth man: the manual pages of this program.
#ifndef BERTH_CLIENTS_CLI_MAN_COMMAND_H_
#define BERTH_CLIENTS_CLI_MAN_COMMAND_H_

#include <CLI/CLI.hpp>

#include "clients/cli/session.h"

namespace berth {

// To be added last; both arguments outlive the parsing.
void AddManCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MAN_COMMAND_H_
