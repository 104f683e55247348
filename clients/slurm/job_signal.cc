#include "clients/slurm/job_signal.h"

#include "absl/strings/str_cat.h"
#include "clients/session/task_command.h"
#include "clients/slurm/numbers.h"

namespace berth {

absl::Status SignalSlurmJob(SlurmContext& context, const v1::Job& job, int signal, SignalTo to) {
  v1::GetJobRequest request;
  request.set_name(job.name());
  const auto whole = context.Call(&v1::JobService::StubInterface::GetJob, request);
  if (!whole.ok()) return whole.status();
  const auto& command = whole->spec().groups(0).command();
  if (command.size() != 3 || command[1] != "slurmstepd") {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", NumberOf(job), " was not submitted by sbatch: end it, or use berth exec"));
  }
  const char* target = to == SignalTo::kSteps ? "steps" : to == SignalTo::kBatch ? "batch" : "both";
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  const auto code =
      RunInTask(**client, job.name(), "",
                {.argv = {command[0], "slurmstepd", "signal", absl::StrCat(signal), target},
                 .take = nullptr,
                 .give = nullptr},
                context.err());
  if (!code.ok()) return code.status();
  if (*code == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", NumberOf(job), " could not be signalled (", *code, ")"));
}

}  // namespace berth
