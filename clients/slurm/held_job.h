// A job that only holds places, for a process outside of it: srun alone, and salloc.
#ifndef BERTH_CLIENTS_SLURM_HELD_JOB_H_
#define BERTH_CLIENTS_SLURM_HELD_JOB_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/slurm/allocation.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

// The job ends with End(), with this object, and with this process: a command in it waits for this
// process's end of the connection.
class HeldJob {
 public:
  virtual ~HeldJob() = default;
  virtual const std::string& number() const = 0;
  virtual void End() = 0;
};

// Submits it and waits until it runs. `says`: tells on standard error how it stands. While it
// waits, SIGINT and SIGTERM cancel it: CANCELLED.
absl::StatusOr<std::unique_ptr<HeldJob>> HoldJob(SlurmContext& context, AllocationRequest* request,
                                                 bool says, SignalEvents& events);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_HELD_JOB_H_
