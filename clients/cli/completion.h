// Completion of command lines. A script for each shell asks this program, which knows its commands;
// names come from the server.
#ifndef BERTH_CLIENTS_CLI_COMPLETION_H_
#define BERTH_CLIENTS_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

inline constexpr char kCompleteCommand[] = "__complete";  // of the scripts, and in no help
inline constexpr absl::Duration kNamesTimeout = absl::Seconds(1);
inline constexpr size_t kMaxCompletedNames = 1000;

// `words` are those behind the program's name, the last one unfinished or "". Prints what it may
// become, a line each with a tab and a description where there is one; ":files" where a file is
// meant. Names are asked of the server that the words name, for at most kNamesTimeout; without one
// there are none, and nothing is said about it.
ExitCode Complete(CLI::App& app, const std::vector<std::string>& words, Session& session);

// `berth completion bash|zsh|fish`. To be added last; both arguments outlive the parsing.
void AddCompletionCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_H_
