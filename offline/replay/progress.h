// The progress of running jobs, if it depends on more than the job. It receives all decisions, and
// determines when running jobs end.
#ifndef BERTH_OFFLINE_REPLAY_PROGRESS_H_
#define BERTH_OFFLINE_REPLAY_PROGRESS_H_

#include <cstddef>
#include <optional>

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

  // For models in which faults strike and jobs save their work. Others ignore faults, and each job
  // that is stopped starts again from the beginning.

  // The job makes no progress from now on until it is stopped.
  virtual void StandsStill(SimCluster* /*cluster*/, JobId /*job*/) {}
  // The same for all jobs with tasks on this node, until it is no longer so.
  virtual void NodeStands(SimCluster* /*cluster*/, NodeId /*node*/, bool /*stands*/) {}
  // Of the job with this index in the workload. nullopt: it saves nothing.
  virtual std::optional<Duration> CheckpointInterval(size_t /*index*/) const {
    return std::nullopt;
  }
  // The time that the job would lose if it were stopped now; infinite: all since its tasks started.
  virtual Duration Unsaved(JobId /*job*/, Time /*now*/) const { return absl::InfiniteDuration(); }
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_PROGRESS_H_
