// What it costs a training job to save its work, and to start again (docs/developers/replay.md).
//
//   interval 10 min, checkpoint 1 min, restart 5 min; starts again at 0:00, is stopped at 0:30
//     trains from 0:05, saves at 0:15, trains from 0:16, saves at 0:26, trains from 0:27:
//     20 min of work are saved, 3 min are lost
//
// The first start costs nothing: what follows it is work.
#ifndef BERTH_OFFLINE_REPLAY_TRAINING_COSTS_H_
#define BERTH_OFFLINE_REPLAY_TRAINING_COSTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/replay/workload.h"

namespace berth::replay {

struct TrainingCosts {
  Duration interval = absl::InfiniteDuration();  // work between two checkpoints; > 0
  Duration checkpoint;                           // it stands still for so long
  Duration restart;                              // before it trains, when it starts again
};

// The parts of the time since a start.
struct TrainingTime {
  Duration restart, checkpoints;
  Duration saved, unsaved;  // work
};
// `again`: this is not the first start.
TrainingTime TrainingTimeOf(const TrainingCosts& costs, bool again, Duration time);
// From a start until this work is done. A checkpoint that would be made at the end is not.
Duration TimeToTrain(const TrainingCosts& costs, bool again, Duration work);

using TrainingEntries = google::protobuf::RepeatedPtrField<sim::v1::TrainingCosts>;

// INVALID_ARGUMENT, with the path, for a repeated name or a value out of range.
absl::Status CheckTraining(const TrainingEntries& entries);

// Of each job: what it says itself, else what the entry of its class says, else `interval`.
// INVALID_ARGUMENT for a class without an entry.
absl::StatusOr<std::vector<TrainingCosts>> CostsOf(const TrainingEntries& entries,
                                                   Duration interval, const Workload& workload);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_TRAINING_COSTS_H_
