// Shell completion, generated from the tree of commands itself.
#ifndef BERTH_CLIENTS_CLI_COMPLETION_H_
#define BERTH_CLIENTS_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "clients/cli/session.h"

namespace berth {

// A bash script that completes commands, options, and names of jobs, queues and nodes (asked of the
// server).
std::string BashCompletion(const CLI::App& app);

// `berth completion bash`. To be added last; both arguments outlive the parsing.
void AddCompletionCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_H_
