// How resources are named on the command line: NAME, or TYPE/NAME as -o name prints it. A type may
// be written in the plural or short: "job/x", "jobs/x", "j/x".
#ifndef BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_
#define BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"

namespace berth {

// "jobs" -> "job"; "" if `word` is not a type.
std::string NounOf(absl::string_view word);

// For options that take names of `noun`: removes TYPE/, and refuses another type. Nouns without
// resources ("topology") take HyperNodes.
CLI::Validator NameOf(const std::string& noun);
// Likewise for jobs and their tasks: "job/x/worker-0" becomes "x/worker-0", and "x" stays.
CLI::Validator JobOrTaskName();
// A task alone: "worker-0", also as "job/x/worker-0".
CLI::Validator TaskName();
// After JobOrTaskName: splits "x/worker-0" into a job and a task. An explicit task takes
// precedence.
void SplitTask(std::string* job, std::string* task);

// "worker-0".
std::string NameOfTask(const v1::Task& task);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_RESOURCE_NAMES_H_
