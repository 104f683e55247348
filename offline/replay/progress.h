// The progress of running jobs, if it depends on more than the job. It receives all decisions, and
// determines when running jobs end.
#ifndef BERTH_OFFLINE_REPLAY_PROGRESS_H_
#define BERTH_OFFLINE_REPLAY_PROGRESS_H_

#include <cstddef>

#include "offline/sim/sim_cluster.h"

namespace berth::replay {

class Progress {
 public:
  virtual ~Progress() = default;
  // The job with this index in the workload has been submitted.
  virtual void Submitted(JobId job, size_t index) = 0;
  // Tasks of the job are stopped without a decision: a node failed.
  virtual void Stopped(JobId job) = 0;
  // Called before the decision is applied.
  virtual void Decided(const SimCluster& cluster, const EventBody& decision) = 0;
  // All decisions of this moment are applied, and agents have followed them. Sets when running jobs
  // end (SimCluster::RunsUntil).
  virtual void Settled(SimCluster* cluster) = 0;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_PROGRESS_H_
