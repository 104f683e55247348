// Runs a step: its parts on the nodes, their output, input, signals and ends.
#ifndef BERTH_CLIENTS_SLURM_STEP_RUN_H_
#define BERTH_CLIENTS_SLURM_STEP_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/step_job.h"

namespace berth {

struct StepPlan {
  std::vector<int> counts;  // tasks, by the number of the node in the job; 0: none there
  int tasks = 0;
  std::string number;  // of the step
  std::vector<std::string> command;
  Variables variables;  // exported to the tasks
  std::string directory;
  std::string stdout_pattern, stderr_pattern, input;  // as in the options; "": this process's
  bool append = false;
  bool label = false;
  bool kill_on_bad_exit = false;
  absl::Duration wait = absl::InfiniteDuration();  // after the first end, for the others
};

// The exit code: the greatest of its tasks. `events` are this process's signals.
int RunStep(SlurmContext& context, const StepJob& job, const StepPlan& plan, SignalEvents& events);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_STEP_RUN_H_
