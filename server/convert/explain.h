// Results of the engine's dry runs and explanations (core/engine/explain/dry_run.h, explain.h) as
// API messages. All functions read the state: loop thread or reader lock.
#ifndef BERTH_SERVER_CONVERT_EXPLAIN_H_
#define BERTH_SERVER_CONVERT_EXPLAIN_H_

#include "berth/v1/explain.pb.h"
#include "core/engine/explain/dry_run.h"
#include "core/engine/explain/explain.h"
#include "core/model/cluster_state.h"

namespace berth {

// `spec`: the planned job, which does not exist in the state.
void RenderPlan(const ClusterState& state, const JobSpec& spec, const DryRunResult& plan,
                v1::PlanJobResponse* out);

void RenderExplanation(const ClusterState& state, const Job& job, const Explanation& explanation,
                       v1::ExplainJobResponse* out);

// As a field of the job, with the value that would start it.
void RenderRemedy(const ClusterState& state, const Job& job, const Remedy& remedy, v1::Remedy* out);

void RenderEstimate(const StartEstimate& estimate, v1::EstimateJobResponse* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_EXPLAIN_H_
