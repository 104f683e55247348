// How resources are named on the command line: NAME, or TYPE/NAME as -o name prints it. A type may
// be written in the plural or short: "job/x", "jobs/x", "j/x".
#ifndef BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_
#define BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// "jobs" -> "job"; "" for what is no type.
std::string NounOf(absl::string_view word);

// For options that take names of `noun`: TYPE/ is taken off, and another type is refused. For nouns
// without resources of their own ("topology": HyperNodes) the type is theirs.
CLI::Validator NameOf(const std::string& noun);
// Likewise for jobs and their tasks: "job/x/worker-0" becomes "x/worker-0", and "x" stays.
CLI::Validator JobOrTaskName();
// A task alone: "worker-0", also as "job/x/worker-0".
CLI::Validator TaskName();
// After JobOrTaskName: parts "x/worker-0" into a job and a task, which an explicit one overrides.
void SplitTask(std::string* job, std::string* task);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_
