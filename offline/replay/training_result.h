// The figures of a replay of jobs that save their work (docs/developers/replay.md, "Training jobs
// and faults").
#ifndef BERTH_OFFLINE_REPLAY_TRAINING_RESULT_H_
#define BERTH_OFFLINE_REPLAY_TRAINING_RESULT_H_

#include "berth/sim/v1/training.pb.h"
#include "offline/replay/replay.h"
#include "offline/replay/training_progress.h"

namespace berth::replay {

sim::v1::TrainingFigures FiguresOf(const Workload& workload, const ReplayRun& run,
                                   const TrainingRun& training);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_TRAINING_RESULT_H_
