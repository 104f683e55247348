// How far a command line, perhaps unfinished, goes into the tree of commands. Nothing is run, and
// nothing is refused.
#ifndef BERTH_CLIENTS_CLI_COMMAND_WALK_H_
#define BERTH_CLIENTS_CLI_COMMAND_WALK_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth {

struct CommandWalk {
  const CLI::App* place = nullptr;         // the command that the words name so far
  const CLI::Option* pending = nullptr;    // its value comes next
  std::vector<std::string> positionals;    // words that are neither commands nor options
  std::optional<size_t> first_positional;  // where the first of them stands
  bool unknown_option = false;             // one that is none of the command's stands before that
  bool dashes = false;                     // "--" was there: what follows is a task's command
  std::vector<std::pair<const CLI::Option*, std::string>> values;  // of options, as given
};

// `root` outlives the result. Words do not include the program's name.
CommandWalk WalkCommandLine(const CLI::App& root, const std::vector<std::string>& words);

// The option of this name ("--queue", "-q"), of the command or of those above it; null if there is
// none.
const CLI::Option* FindOption(const CLI::App& place, const std::string& name);

// Whether it is given without a value.
bool IsFlag(const CLI::Option& option);

// For `submit` of words that are no file: how to submit them as a command; "" for other command
// lines.
std::string SubmitHint(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMMAND_WALK_H_
