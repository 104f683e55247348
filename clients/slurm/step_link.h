// The connection of srun to the part of its step on one node.
#ifndef BERTH_CLIENTS_SLURM_STEP_LINK_H_
#define BERTH_CLIENTS_SLURM_STEP_LINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

class StepLink {
 public:
  virtual ~StepLink() = default;
  // Frames from the node come here; its end is the part's end. Non-blocking.
  virtual int fd() const = 0;
  virtual bool Send(absl::string_view bytes) = 0;
  // Why it ended, if not by itself.
  virtual std::string Trouble() = 0;
};

// A child of this process: on its own node.
absl::StatusOr<std::unique_ptr<StepLink>> LinkHere(const std::string& program);
// A command in a task of the job, by Exec. Waits until that runs, for up to a minute.
absl::StatusOr<std::unique_ptr<StepLink>> LinkThere(SlurmContext& context, const std::string& job,
                                                    const std::string& task);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_STEP_LINK_H_
