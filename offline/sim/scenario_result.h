// Converts the state of a cluster and its decisions to messages.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_RESULT_H_
#define BERTH_OFFLINE_SIM_SCENARIO_RESULT_H_

#include <string>
#include <vector>

#include "berth/sim/v1/result.pb.h"
#include "core/engine/plan.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

// Converts a decision. `before` is the state to which it is about to be applied.
std::vector<sim::v1::Decision> DecisionMessages(const ClusterState& before,
                                                const EventBody& decision, Time start);

// Every task, by job and number.
google::protobuf::RepeatedPtrField<sim::v1::TaskResult> TasksOf(const ClusterState& state);

// Tasks, jobs, queues and nodes as they are now.
void AddEnd(const SimCluster& cluster, sim::v1::ScenarioResult* result);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_RESULT_H_
