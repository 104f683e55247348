// Input of predictions: what a job requested, and how long it ran.
#ifndef BERTH_CORE_MODEL_FINISHED_RUN_H_
#define BERTH_CORE_MODEL_FINISHED_RUN_H_

#include "core/model/cluster_state.h"

namespace berth {

// The predicted run time of the job, based on the current run history.
RunPrediction PredictionFor(const ClusterState& state, const JobSpec& spec);

// The run of an ended job, from its latest start to its end; zero if it never started.
Duration RunOf(const Job& job);
FinishedRun FinishedRunOf(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_FINISHED_RUN_H_
