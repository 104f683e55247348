// Command lines that put the verb first, as in kubectl: "get job x", "describe job/x".
#ifndef BERTH_CLIENTS_CLI_VERB_FIRST_H_
#define BERTH_CLIENTS_CLI_VERB_FIRST_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

// Puts the noun first in a command line, as `app` expects:
//   get job x, get job/x -> job get x, job get job/x
//   get jobs             -> job list
//   jobs list            -> job list
// Others stay as they are. INVALID_ARGUMENT, with what to type, for a verb without a type.
absl::StatusOr<std::vector<std::string>> NounFirst(const CLI::App& app,
                                                   std::vector<std::string> words);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VERB_FIRST_H_
