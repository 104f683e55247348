// berth-rsh: an rsh agent for mpirun, which starts its daemons on the job's other nodes by commands
// in their tasks, without ssh.
//
//   mpirun --mca plm_rsh_agent berth-rsh ...      (Open MPI; OMPI_MCA_plm_rsh_agent)
//   mpiexec -launcher-exec berth-rsh ...          (MPICH and Intel; HYDRA_LAUNCHER_EXEC)
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/session/exec_call.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/variables.h"

namespace berth {
namespace {

constexpr absl::Duration kMostWait = absl::Seconds(60);
constexpr absl::Duration kBetweenCalls = absl::Milliseconds(200);

struct RshCall {
  std::string host;
  std::string command;  // for the shell there
};

// As launchers call rsh and ssh: options, a host, and the words of the command.
absl::StatusOr<RshCall> ReadRshCall(const Words& words) {
  size_t at = 0;
  while (at < words.size() && !words[at].empty() && words[at][0] == '-') {
    const bool with_value = words[at] == "-l" || words[at] == "-p" || words[at] == "-o";
    at += with_value ? 2 : 1;
  }
  if (at + 1 >= words.size())
    return absl::InvalidArgumentError("expected HOST COMMAND...; mpirun calls it, not people");
  const Words command(words.begin() + static_cast<long>(at) + 1, words.end());
  return RshCall{words[at].substr(words[at].find('@') + 1), absl::StrJoin(command, " ")};
}

// The job's task on the host, by the node's name or its address in the job's host file.
absl::StatusOr<std::string> TaskOnHost(Client& client, const std::string& job,
                                       const std::vector<std::string>& addresses,
                                       const std::string& host) {
  const auto tasks = TasksOfJob(client, job);
  if (!tasks.ok()) return tasks.status();
  for (const v1::Task& task : *tasks) {
    const auto rank = static_cast<size_t>(std::max(task.rank(), 0));
    const bool by_address = task.rank() >= 0 && rank < addresses.size() && addresses[rank] == host;
    if (task.node() == host || by_address) return absl::StrCat(task.group(), "-", task.index());
  }
  return absl::NotFoundError(absl::StrCat("job ", job, " has no task on ", host));
}

}  // namespace

int RunBerthRsh(SlurmContext& context, const Words& words) {
  const auto call = ReadRshCall(words);
  if (!call.ok()) return context.Fail(call.status());
  const char* job = std::getenv("BERTH_JOB");
  if (job == nullptr) {
    return context.Fail(absl::FailedPreconditionError(
        "this is no task of a job: mpirun must run inside a job that sbatch or salloc made"));
  }
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return context.Fail(client.status());
  const auto task = TaskOnHost(**client, job, AddressesOf(OwnVariables()), call->host);
  if (!task.ok()) return context.Fail(task.status());
  ExecCall exec;
  exec.open.set_job(job);
  exec.open.set_task(*task);
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), call->command})
    exec.open.add_command(word);
  const absl::Time end = absl::Now() + kMostWait;
  for (;;) {
    const ExecResult result = RunExecCall(**client, exec, context.out(), context.err());
    if (result.began || absl::Now() > end || result.status.ok()) {
      if (!result.status.ok()) return context.Fail(result.status);
      return result.exit_code.value_or(1);
    }
    absl::SleepFor(kBetweenCalls);  // the task has not begun yet
  }
}

}  // namespace berth
