// The environment of the processes of Slurm jobs.
#ifndef BERTH_CLIENTS_SLURM_VARIABLES_H_
#define BERTH_CLIENTS_SLURM_VARIABLES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/cli/v1/slurm.pb.h"
#include "berth/v1/job.pb.h"
#include "clients/slurm/file_pattern.h"

namespace berth {

using Variables = std::map<std::string, std::string>;

// This process's.
Variables OwnVariables();
// "NAME=VALUE" for a child.
std::vector<std::string> EnvironmentOf(const Variables& variables);

// ---- What sbatch says to the nodes, in variables of the job's tasks.

inline constexpr size_t kMostBatchBytes = size_t{512} << 10;
// INVALID_ARGUMENT if the script and the exported environment are larger than kMostBatchBytes.
absl::Status SetBatch(const cli::v1::SlurmBatch& batch, v1::TaskGroup* group);
// FAILED_PRECONDITION in a task that is not of a Slurm job.
absl::StatusOr<cli::v1::SlurmBatch> BatchOf(const Variables& own);

// ---- What a process of the job gets.

// `exported` and the variables of the job on this node, `own`: those that the agent set go before,
// but for the user's (HOME, PATH, ...). Ranks of Berth's tasks are left out: they are not those of
// Slurm's tasks.
Variables JobVariables(const Variables& exported, const Variables& own);

// What the agent says about the job's places: this part of the job is one node.
struct Allocation {
  std::string job;                     // the number
  std::string array_job, array_index;  // "": of no array
  int64_t array_count = 0;
  std::vector<std::string> nodes;  // by number
  int node = 0;                    // this one
  std::string node_name;
  int restarts = 0;
};
Allocation AllocationOf(const Variables& own);
// Of the nodes, by number: the lines of BERTH_HOSTFILE.
std::vector<std::string> AddressesOf(const Variables& own);

// How many of `tasks` are on each of the nodes: tasks_per_node, and the rest on the last.
std::vector<int> TasksOfNodes(int tasks, int tasks_per_node, int nodes);

// SLURM_JOB_ID ...: of the job, and of the batch script on its first node.
Variables SlurmVariables(const cli::v1::SlurmBatch& batch, const Allocation& allocation);

PatternValues PatternsOf(const cli::v1::SlurmBatch& batch, const Allocation& allocation);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_VARIABLES_H_
