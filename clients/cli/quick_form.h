// The quick form of submit: a job from options and a command. Other commands that make a job take
// the same options: AddQuickOptions, then QuickJobs.
#ifndef BERTH_CLIENTS_CLI_QUICK_FORM_H_
#define BERTH_CLIENTS_CLI_QUICK_FORM_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/manifest.h"

namespace berth {

struct QuickForm {
  v1::Job job;          // fields that options set directly
  v1::TaskGroup group;  // likewise
  int32_t gpus = 0;
  std::string gpu_share;
  std::string gpu_memory;
  std::string cpu;
  std::string memory;
  std::string scratch;
  std::string walltime;
  std::string begin;
  std::string topology;
  std::string array;
  std::vector<std::string> devices;
  std::vector<std::string> volumes;
  std::vector<std::string> tmpfs;
  std::vector<std::string> env;
  std::vector<std::string> labels;
  std::vector<std::string> node_labels;
  std::vector<std::string> after;
  bool used = false;  // any of its options was given
};

// Of which command they are: `run` has other meanings for some letters.
enum class QuickCommand { kSubmit, kRun };

// Parsing the command line fills `form`, which lives as long as `submit`.
void AddQuickOptions(CLI::App& submit, const std::shared_ptr<QuickForm>& form,
                     QuickCommand command = QuickCommand::kSubmit);

// The job that the options and the command describe. Its manifest records which option set each
// field. INVALID_ARGUMENT names the wrong option.
absl::StatusOr<std::vector<Manifest>> QuickJobs(const QuickForm& form,
                                                const std::vector<std::string>& command,
                                                absl::Time now, absl::TimeZone zone);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_QUICK_FORM_H_
