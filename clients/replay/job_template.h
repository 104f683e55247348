// How the jobs of a workload are submitted, where the workload does not tell: the one job of a file
// of --config, without a size.
//
//   jobs: [{name: any, strategy: SPREAD, minAvailable: 1}]                 one task after the other
//   jobs: [{name: any, topology: {mode: SOFT, highestTier: 1, patience: 10m}}]
#ifndef BERTH_CLIENTS_REPLAY_JOB_TEMPLATE_H_
#define BERTH_CLIENTS_REPLAY_JOB_TEMPLATE_H_

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "core/model/job.h"

namespace berth::replay {

struct JobTemplate {
  Strategy strategy = Strategy::kDefault;
  TopologyConstraint topology;
  int32_t min_available = 0;  // of the tasks, at most, of jobs of one group; 0: all, a gang
  bool preemptible = false;   // all are
  Duration checkpoint_interval = absl::InfiniteDuration();  // of all that do not tell their own
};

// INVALID_ARGUMENT, with the path, for more than one job, and for a field that is not taken: it
// takes name, strategy, topology, minAvailable, preemptible and checkpointInterval.
absl::StatusOr<JobTemplate> ToJobTemplate(const sim::v1::Scenario& scenario);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_JOB_TEMPLATE_H_
