// Submitting a job, as sbatch, srun and salloc do.
#ifndef BERTH_CLIENTS_SLURM_SUBMIT_H_
#define BERTH_CLIENTS_SLURM_SUBMIT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/allocation.h"
#include "clients/slurm/slurm_config.h"
#include "clients/slurm/variables.h"

namespace berth {

// The user's name by the password file, or the uid.
std::string UserName();
std::string HostName();
std::string CurrentDirectory();

// --export: which of this process's variables the job gets, and new ones. SLURM_* and BERTH_* of
// this process are none of the job's.
absl::StatusOr<Variables> ExportedVariables(const std::string& option, const Variables& own);

// The request's sizes and its job, with what the nodes must know. Asks the server where it must.
absl::StatusOr<v1::Job> PrepareJob(SlurmContext& context, AllocationRequest* request,
                                   cli::v1::SlurmBatch* batch);
// Puts `batch` into the job.
absl::StatusOr<v1::SubmitJobsResponse::Submitted> SubmitSlurmJob(SlurmContext& context, v1::Job job,
                                                                 const cli::v1::SlurmBatch& batch);
AllocationContext AllocationContextOf(SlurmContext& context);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_SUBMIT_H_
