// berth attach JOB [TASK]: the terminal of a task.
#include <memory>

#include "clients/cli/attach.h"
#include "clients/cli/command.h"
#include "clients/cli/resource_names.h"
#include "clients/session/terminal_io.h"

namespace berth {
namespace {

const CLI::Validator kAreDetachKeys(
    [](const std::string& text) -> std::string {
      const absl::StatusOr<std::string> keys = ParseDetachKeys(text);
      return keys.ok() ? "" : std::string(keys.status().message());
    },
    "KEYS");

}  // namespace

CLI::Option* AddDetachKeys(CLI::App& command, std::string* keys) {
  *keys = *ParseDetachKeys(kDetachKeys);
  return command
      .add_option_function<std::string>(
          "--detach-keys", [keys](const std::string& text) { *keys = *ParseDetachKeys(text); },
          "keys that leave the task running and end this program; default ctrl-p,ctrl-q; \"\": "
          "none")
      ->check(kAreDetachKeys);
}

void AddAttachCommand(CLI::App& app, Session& session) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* attach = AddCommand(app, session, "attach",
                                "work in the terminal of a running task; exits with its exit code",
                                [options](Session& s) {
                                  SplitTask(&options->job, &options->task);
                                  return AttachToTask(s, *options);
                                });
  attach->add_option("JOB", options->job, "job, or job/JOB/TASK")
      ->required()
      ->transform(JobOrTaskName());
  attach->add_option("TASK", options->task, "GROUP-INDEX; default: rank 0")->transform(TaskName());
  AddDetachKeys(*attach, &options->detach_keys);
}

}  // namespace berth
