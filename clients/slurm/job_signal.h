// Signals for running jobs.
#ifndef BERTH_CLIENTS_SLURM_JOB_SIGNAL_H_
#define BERTH_CLIENTS_SLURM_JOB_SIGNAL_H_

#include "absl/status/status.h"
#include "clients/slurm/job_directory.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

// By a command in the job's first task, which is told where it runs by the job's own program.
// FAILED_PRECONDITION for a job that no Slurm command submitted.
absl::Status SignalSlurmJob(SlurmContext& context, const v1::Job& job, int signal, SignalTo to);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_SIGNAL_H_
