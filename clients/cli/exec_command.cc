// berth exec JOB -- COMMAND...: runs another command inside a running task.
#include <memory>

#include "clients/cli/command.h"
#include "clients/cli/resource_names.h"
#include "clients/session/exec_call.h"
#include "clients/session/terminal_io.h"

namespace berth {
namespace {

struct ExecArguments {
  std::string job;
  std::string task;
  std::string container;
  bool terminal = false;
  bool no_input = false;
};

ExitCode Exec(Session& session, const ExecArguments& arguments,
              const std::vector<std::string>& command) {
  if (command.empty()) {
    session.err() << "berth: exec needs a command after --\n";
    return ExitCode::kUsage;
  }
  ExecCall call;
  call.raw = arguments.terminal;
  call.no_input = arguments.no_input;
  call.open.set_job(arguments.job);
  call.open.set_task(arguments.task);
  call.open.set_container(arguments.container);
  for (const std::string& word : command) call.open.add_command(word);
  const bool has_terminal = session.io().in_is_terminal;
  if (arguments.terminal && (!has_terminal || !WindowSize(call.open.mutable_terminal()))) {
    session.err() << "berth: --terminal needs a terminal as standard input\n";
    return ExitCode::kUsage;
  }
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  const ExecResult result = RunExecCall(**client, call, session.out(), session.err());
  if (!result.status.ok() || !result.exit_code.has_value()) return session.Finish(result.status);
  return static_cast<ExitCode>(*result.exit_code & 0xff);
}

}  // namespace

void AddExecCommand(CLI::App& app, Session& session, const std::vector<std::string>& command) {
  auto arguments = std::make_shared<ExecArguments>();
  CLI::App* exec =
      AddCommand(app, session, "exec",
                 "run a command inside a running task: exec JOB -- COMMAND...; exits with its code",
                 [arguments, command](Session& s) {
                   SplitTask(&arguments->job, &arguments->task);
                   return Exec(s, *arguments, command);
                 });
  // "NAME" is completed with names of the noun, and "exec" at the top level has no noun.
  exec->add_option(app.get_parent() == nullptr ? "JOB" : "NAME", arguments->job,
                   "job, or job/JOB/TASK")
      ->required()
      ->transform(JobOrTaskName());
  exec->add_option("--task", arguments->task, "GROUP-INDEX; default: rank 0")
      ->transform(TaskName());
  exec->add_option("--container,-c", arguments->container,
                   "container of the task; default: where its command runs");
  exec->add_flag("--terminal,-t", arguments->terminal, "give the command a terminal");
  exec->add_flag("--no-input,-n", arguments->no_input, "give the command no standard input");
}

}  // namespace berth
