// The options of the Slurm commands. One table for each command: parsing, --help, refusals and
// docs/reference/slurm.md come from it.
//
// Each option is done; or refused by name, with what to write instead, before the command has done
// anything; or has no meaning here, which the command says on standard error.
#ifndef BERTH_CLIENTS_SLURM_OPTIONS_H_
#define BERTH_CLIENTS_SLURM_OPTIONS_H_

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

enum class Takes { kNothing, kValue, kMaybe };  // kMaybe: only as --name=VALUE or -xVALUE
enum class Fate { kDone, kRefused, kNoMeaning };

struct SlurmOption {
  const char* name;  // without dashes; "" for one with a letter only
  char letter;       // 0: none
  Takes takes;
  Fate fate;
  // What it does; or what to write instead; or why it has no meaning.
  const char* text;
  // With options in variables of the environment, the rest of its variable's name: SBATCH_TIMELIMIT
  // is "TIMELIMIT"; "": none.
  const char* variable = "";
};

struct SlurmCommand {
  const char* name;      // "sbatch"
  const char* summary;   // "submit a batch script"
  const char* operands;  // "[SCRIPT [ARGUMENT...]]"
  std::span<const SlurmOption> options;
  bool stops_at_operand = false;  // what follows the first operand belongs to the user's command
  const char* variables = "";     // "SBATCH_": prefix of the variables with options; "": none
};

struct GivenOption {
  const SlurmOption* option;
  std::string value;
  std::string source;  // for messages: "--time", "script line 4", "SBATCH_TIMELIMIT"
};

struct SlurmArguments {
  std::vector<GivenOption> options;  // in order
  std::vector<std::string> operands;

  // The last one counts, as in Slurm; null if it was not given.
  const std::string* Find(absl::string_view name) const;
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
};

// --name VALUE, --name=VALUE, unique beginnings of names, -x VALUE, -xVALUE, -xyz, and -- before
// operands. INVALID_ARGUMENT for an unknown option, with the nearest known one. `source` names
// where the words are from; empty: the command line.
absl::StatusOr<SlurmArguments> ParseSlurmArguments(const SlurmCommand& command,
                                                   const std::vector<std::string>& words,
                                                   const std::string& source = "");

// The options that variables of the environment set (name, value).
absl::StatusOr<SlurmArguments> OptionsOfVariables(
    const SlurmCommand& command, const std::vector<std::pair<std::string, std::string>>& variables);

// Reports options that are refused or have no meaning; false if one is refused.
bool AcceptOptions(const SlurmCommand& command, const SlurmArguments& arguments, std::ostream& err);

std::string SlurmHelp(const SlurmCommand& command);
// For docs/reference/slurm.md.
std::string SlurmOptionTable(const SlurmCommand& command);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_OPTIONS_H_
