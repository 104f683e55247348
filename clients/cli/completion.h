// Completion of command lines. The script of each shell calls this program, which knows its
// commands; names come from the server.
#ifndef BERTH_CLIENTS_CLI_COMPLETION_H_
#define BERTH_CLIENTS_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

inline constexpr char kCompleteCommand[] = "__complete";  // called by the scripts, not in help
inline constexpr absl::Duration kNamesTimeout = absl::Seconds(1);
inline constexpr size_t kMaxCompletedNames = 1000;

// `words` are those after the name of the program, the last one unfinished or "". Prints its
// completions, one per line, with a tab and a description if there is one; ":files" if a file name
// is expected. Names come from the server that the words name, within kNamesTimeout. If it does not
// respond, there are no names and no error.
ExitCode Complete(CLI::App& app, const std::vector<std::string>& words, Session& session);

// `berth completion bash|zsh|fish`. Add it last; both arguments must outlive parsing.
void AddCompletionCommand(CLI::App& app, Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_H_
