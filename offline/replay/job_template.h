// How the jobs of a workload are submitted if the workload does not define it: the only job of a
// file of --config, without a size.
//
//   jobs: [{name: any, strategy: SPREAD, minAvailable: 1}]                 one task after the other
//   jobs: [{name: any, topology: {mode: SOFT, highestTier: 1, patience: 10m}}]
#ifndef BERTH_OFFLINE_REPLAY_JOB_TEMPLATE_H_
#define BERTH_OFFLINE_REPLAY_JOB_TEMPLATE_H_

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "core/model/job.h"

namespace berth::replay {

struct JobTemplate {
  Strategy strategy = Strategy::kDefault;
  TopologyConstraint topology;
  int32_t min_available = 0;  // at most all tasks, for jobs of one group; 0: all, a gang
  bool preemptible = false;   // all jobs are
  Duration checkpoint_interval = absl::InfiniteDuration();  // of jobs without their own
};

// INVALID_ARGUMENT, with the path, for more than one job, and for any field except name, strategy,
// topology, minAvailable, preemptible and checkpointInterval.
absl::StatusOr<JobTemplate> ToJobTemplate(const sim::v1::Scenario& scenario);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_JOB_TEMPLATE_H_
