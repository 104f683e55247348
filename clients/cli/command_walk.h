// Follows a command line, possibly unfinished, through the tree of commands. Runs nothing and
// refuses nothing.
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
  std::optional<size_t> first_positional;  // index of the first of them
  bool unknown_option = false;             // an unknown option precedes it
  bool dashes = false;                     // "--" was found: a task's command follows
  std::vector<std::pair<const CLI::Option*, std::string>> values;  // of options, as given
};

// `root` outlives the result. Words do not include the program's name.
CommandWalk WalkCommandLine(const CLI::App& root, const std::vector<std::string>& words);

// The option with this name ("--queue", "-q") of the command or of its parents; null if there is
// none.
const CLI::Option* FindOption(const CLI::App& place, const std::string& name);

// Whether the option takes no value.
bool IsFlag(const CLI::Option& option);

// If the words after `submit` are not a file: how to submit them as a command. Otherwise "".
std::string SubmitHint(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMMAND_WALK_H_
