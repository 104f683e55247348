// What prediction needs to know of a job: what it asks for, and how it ran.
#ifndef BERTH_CORE_MODEL_FINISHED_RUN_H_
#define BERTH_CORE_MODEL_FINISHED_RUN_H_

#include "core/model/cluster_state.h"

namespace berth {

// How long the job will run, by the runs of now.
RunPrediction PredictionFor(const ClusterState& state, const JobSpec& spec);

// Of a job that has ended: from its latest start to its end; zero if it never started.
Duration RunOf(const Job& job);
FinishedRun FinishedRunOf(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_FINISHED_RUN_H_
