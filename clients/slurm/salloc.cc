#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/held_job.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/step_job.h"
#include "clients/slurm/submit.h"

namespace berth {
namespace {

// The command here; it has the terminal, and so its signals.
int RunHere(SlurmContext& context, const Words& command, const Variables& variables) {
  const ChildProcess child{.arguments = command,
                           .environment = EnvironmentOf(variables),
                           .in = STDIN_FILENO,
                           .out = STDOUT_FILENO,
                           .err = STDERR_FILENO};
  const absl::StatusOr<pid_t> pid = StartChild(child);
  if (!pid.ok()) return context.Fail(pid.status());
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ExitCodeOfWait(status);
}

}  // namespace

int RunSalloc(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SallocCommand(), words);
  if (begun.done) return begun.exit_code;
  SignalEvents events;  // the command gets them, from its terminal
  auto request = ReadAllocation(begun.arguments, AllocationContextOf(context));
  if (!request.ok()) return context.Fail(request.status());
  Words command = begun.arguments.operands;
  const char* shell = std::getenv("SHELL");
  if (command.empty()) command.emplace_back(shell == nullptr ? "/bin/sh" : shell);
  if (request->name.empty()) request->name = "interactive";
  const bool says = !begun.arguments.Has("quiet");
  auto held = HoldJob(context, &*request, says, events);
  if (!held.ok()) return context.Fail(held.status());
  const auto job = StepJobOf(context, (*held)->number());
  if (!job.ok()) return context.Fail(job.status());
  Variables variables = OwnVariables();
  for (const auto& [name, value] : SlurmVariables(job->batch, job->allocation))
    variables[name] = value;
  for (const char* name :
       {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_TASK_PID",
        "ENVIRONMENT", "SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"}) {
    variables.erase(name);  // of the batch script, which there is not
  }
  const int code = RunHere(context, command, variables);
  (*held)->End();
  if (says)
    context.err() << "salloc: Relinquishing job allocation " << (*held)->number() << std::endl;
  return code;
}

}  // namespace berth
