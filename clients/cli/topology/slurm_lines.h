// Lines of KEY=VALUE, as in Slurm's configuration files.
//
//   SwitchName=s0 Nodes=dev[0-5]     "#" begins a comment; "\" at the end of a line continues on
//   PriorityType = "a b"             the next; values with blanks are quoted
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_LINES_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_LINES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "support/yaml_tree.h"

namespace berth {

struct SlurmSetting {
  std::string key;   // in lower case
  std::string word;  // as written
  std::string value;
  YamlPosition position;
};
using SlurmLine = std::vector<SlurmSetting>;  // never empty

// Calls `see` with each line that has settings. Adds an error for a line with anything else, and
// for Include, and leaves that line out.
void ReadSlurmLines(absl::string_view text, YamlErrors* errors,
                    absl::FunctionRef<void(const SlurmLine&)> see);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_SLURM_LINES_H_
