// What the engine answers to questions (core/engine/dry_run.h, explain.h), through the API's door.
// All read the state: loop thread or reader lock.
#ifndef BERTH_SERVER_CONVERT_EXPLAIN_H_
#define BERTH_SERVER_CONVERT_EXPLAIN_H_

#include "berth/v1/explain.pb.h"
#include "core/engine/dry_run.h"
#include "core/engine/explain.h"
#include "core/model/cluster_state.h"

namespace berth {

// `spec`: the job that was planned, which is not there.
void RenderPlan(const ClusterState& state, const JobSpec& spec, const DryRunResult& plan,
                v1::PlanJobResponse* out);

void RenderExplanation(const ClusterState& state, const Job& job, const Explanation& explanation,
                       v1::ExplainJobResponse* out);

// Of the job that was asked about: as a field of it, with the value that would start it.
void RenderRemedy(const ClusterState& state, const Job& job, const Remedy& remedy, v1::Remedy* out);

void RenderEstimate(const StartEstimate& estimate, v1::EstimateJobResponse* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_EXPLAIN_H_
