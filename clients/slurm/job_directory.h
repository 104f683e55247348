// The directory of a job's batch script on its first node, and who gets signals there.
//
//   DIRECTORY/script        the batch script
//   DIRECTORY/batch         the number of its process
//   DIRECTORY/steps/PID     one for each srun that runs; its content is what the step holds
//   DIRECTORY/lock          of the steps' numbers and of what they hold
//   DIRECTORY/job           SlurmBatch, for srun
#ifndef BERTH_CLIENTS_SLURM_JOB_DIRECTORY_H_
#define BERTH_CLIENTS_SLURM_JOB_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/variables.h"

namespace berth {

inline constexpr char kDirectoryVariable[] = "BERTH_SLURM_DIRECTORY";

// Where it is, in the task's own directory for temporary files.
std::string JobDirectoryOf(const Variables& own);
// Makes it, and removes what an earlier one left. FAILED_PRECONDITION if somebody else owns it.
absl::Status MakeJobDirectory(const std::string& directory);
void RemoveJobDirectory(const std::string& directory);

absl::StatusOr<cli::v1::SlurmBatch> BatchIn(const std::string& directory);

// CPUs that steps hold on the nodes of the job, while the lock is held.
class StepBook {
 public:
  // Waits for the lock. An empty directory: no book is kept, and nothing is held.
  explicit StepBook(const std::string& directory);
  ~StepBook();
  StepBook(const StepBook&) = delete;
  StepBook& operator=(const StepBook&) = delete;

  // Of the steps whose processes live, by the number of the node.
  std::vector<int> HeldCpus(int nodes) const;
  // The next number of a step; 0, 1, ...
  int TakeStepNumber();
  // This process is a step that holds them; Leave() ends that.
  absl::Status Enter(const std::vector<int>& cpus);
  static void Leave(const std::string& directory);

 private:
  const std::string directory_;
  int lock_ = -1;
};

absl::Status WriteFileIn(const std::string& path, absl::string_view text, int mode);

// The processes of the steps that run.
std::vector<int> StepProcesses(const std::string& directory);
// The batch script's process; 0: none.
int BatchProcess(const std::string& directory);

enum class SignalTo { kSteps, kBatch, kBoth };
// How many processes were signalled; srun passes signals on to all its tasks.
int SignalJob(const std::string& directory, int signal, SignalTo to);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_DIRECTORY_H_
