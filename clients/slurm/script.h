// Batch scripts: their text, and the options in their #SBATCH lines.
#ifndef BERTH_CLIENTS_SLURM_SCRIPT_H_
#define BERTH_CLIENTS_SLURM_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/options.h"

namespace berth {

inline constexpr size_t kMostScriptBytes = size_t{4} << 20;

// The words of the #SBATCH lines, line by line; they end at the first line that is neither empty
// nor a comment. Quotes and backslashes are as in a shell; " #" begins a comment.
struct ScriptLine {
  int number = 0;
  std::vector<std::string> words;
};
absl::StatusOr<std::vector<ScriptLine>> DirectivesOf(absl::string_view script);

// Their options, with "script line 4" as the source.
absl::StatusOr<SlurmArguments> OptionsOfScript(const SlurmCommand& command,
                                               absl::string_view script);

// INVALID_ARGUMENT for what is no script: no #! line, lines that end as in Windows, NUL bytes.
absl::Status CheckScript(absl::string_view script);

// Words as a shell would split them.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view line);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_SCRIPT_H_
