// The job in which srun starts a step, and the places of its tasks.
#ifndef BERTH_CLIENTS_SLURM_STEP_JOB_H_
#define BERTH_CLIENTS_SLURM_STEP_JOB_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/slurm_config.h"
#include "clients/slurm/variables.h"

namespace berth {

struct StepJob {
  cli::v1::SlurmBatch batch;
  Allocation allocation;
  std::string name;       // Berth's
  std::string directory;  // of the batch script (job_directory.h); "": this process is outside
  bool inside = false;    // this process runs in the job, on the node allocation.node
};

// Of this process's own job, from its variables.
absl::StatusOr<StepJob> OwnStepJob(const Variables& own);
// Of a job by its number, from the server; it must run.
absl::StatusOr<StepJob> StepJobOf(SlurmContext& context, const std::string& number);

// By the number of the node: "node-3".
absl::StatusOr<std::vector<std::string>> TaskNames(Client& client, const std::string& job,
                                                   int nodes);

// How many tasks of a step each node of the job gets.
struct StepRequest {
  int tasks = 0;           // 0: all of the job
  int nodes = 0;           // 0: as many as the tasks need
  int tasks_per_node = 0;  // 0: evenly
  int cpus_per_task = 0;   // 0: as the job
  std::set<int> only;      // numbers of nodes; empty: all
};
// Nothing: other steps hold the CPUs now. FAILED_PRECONDITION: the job is too small. `held`: CPUs
// by the number of the node.
absl::StatusOr<std::optional<std::vector<int>>> PlaceStep(const StepRequest& request,
                                                          const cli::v1::SlurmBatch& batch,
                                                          int nodes, const std::vector<int>& held);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_STEP_JOB_H_
