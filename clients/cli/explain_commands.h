// "berth job explain", "plan" and "estimate".
#ifndef BERTH_CLIENTS_CLI_EXPLAIN_COMMANDS_H_
#define BERTH_CLIENTS_CLI_EXPLAIN_COMMANDS_H_

#include "clients/cli/command.h"

namespace berth {

// Adds them to the noun "job". `session` outlives it.
void AddExplainCommands(CLI::App& noun, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_EXPLAIN_COMMANDS_H_
