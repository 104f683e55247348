// How a job ended, in Slurm's words.
#ifndef BERTH_CLIENTS_SLURM_JOB_END_H_
#define BERTH_CLIENTS_SLURM_JOB_END_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

struct JobExit {
  int code = 0;
  int signal = 0;
};

absl::StatusOr<std::vector<v1::Task>> TasksOfJob(Client& client, const std::string& job);
// Of the batch script; of a gang, of the first task that failed.
JobExit ExitOf(const std::vector<v1::Task>& tasks);

// Waits for the job's end by a watch, and returns its exit code: 128 + N for signal N, and at least
// 1 for a job that did not succeed.
absl::StatusOr<int> AwaitJobEnd(SlurmContext& context, const std::string& job);
// Waits until it runs, or has ended: its state then.
absl::StatusOr<v1::JobState> AwaitJobStart(SlurmContext& context, const std::string& job);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_END_H_
