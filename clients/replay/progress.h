// How fast what runs goes on, where that depends on more than the job: it is told what is decided,
// and says when running jobs end.
#ifndef BERTH_CLIENTS_REPLAY_PROGRESS_H_
#define BERTH_CLIENTS_REPLAY_PROGRESS_H_

#include <cstddef>

#include "clients/sim/sim_cluster.h"

namespace berth::replay {

class Progress {
 public:
  virtual ~Progress() = default;
  // The job of that place in the workload has been submitted.
  virtual void Submitted(JobId job, size_t index) = 0;
  // Tasks of it are stopped by what is no decision: a node fails.
  virtual void Stopped(JobId job) = 0;
  // Before it is applied.
  virtual void Decided(const SimCluster& cluster, const EventBody& decision) = 0;
  // All decisions of this moment are applied, and agents have done what they were told: says when
  // running jobs end (SimCluster::RunsUntil).
  virtual void Settled(SimCluster* cluster) = 0;
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_PROGRESS_H_
