// slurmstepd: the program on the nodes of a Slurm job.
//
//   slurmstepd batch             what each task of the job runs: on the first node the batch
//   script,
//                                on the others, and without a script, nothing
//   slurmstepd step              a node's part of a step; frames.h on its standard input and output
//   slurmstepd signal NUMBER TO  signals the job (run by scancel, on its first node); TO is steps,
//                                batch or both
//   slurmstepd hold              ends the job once standard input ends: srun and salloc keep it
//   open
#ifndef BERTH_CLIENTS_SLURM_STEP_DAEMON_H_
#define BERTH_CLIENTS_SLURM_STEP_DAEMON_H_

#include <string>
#include <vector>

namespace berth {

int RunStepDaemon(const std::vector<std::string>& words);

int RunBatch();     // step_batch.cc
int RunNodeStep();  // step_tasks.cc

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_STEP_DAEMON_H_
