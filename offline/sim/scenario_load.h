// Loads a scenario into a cluster.
//
// Events create the state in an order in which it could have happened: queues (still without
// limits), nodes, HyperNodes, jobs by age and name with the past of their tasks, then nominations,
// and finally everything that could have prevented this: unhealthy devices, cordons, silence,
// limits, closed queues. So everything passes the checks of Apply, and ids follow from names.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_LOAD_H_
#define BERTH_OFFLINE_SIM_SCENARIO_LOAD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

// 2026-01-01T00:00:00Z: the start of every scenario.
Time ScenarioStart();

inline constexpr int kMaxScenarioNodes = 100'000;
inline constexpr int64_t kMaxScenarioTasks = 1'000'000;

// INVALID_ARGUMENT or UNIMPLEMENTED, with the path of the wrong field before the text.
absl::Status LoadScenario(const sim::v1::Scenario& scenario, SimCluster* cluster);

// Steps that change declared objects use the same functions.
absl::Status CreateQueue(const sim::v1::Queue& queue, const std::string& path, SimCluster* cluster);
absl::Status UpdateQueue(const sim::v1::Queue& queue, const std::string& path, SimCluster* cluster);
// Registers every node of the pattern, again if it is known.
absl::Status RegisterNodes(const sim::v1::Node& node, bool healthy, const std::string& path,
                           SimCluster* cluster);
// Creates or updates these HyperNodes and deletes `deleted`, all at once.
absl::Status ChangeHyperNodes(
    const google::protobuf::RepeatedPtrField<sim::v1::HyperNode>& hyper_nodes,
    const std::vector<std::string>& deleted, const std::string& path, SimCluster* cluster);
// Submits jobs by age and name, with the present states of their tasks.
absl::Status SubmitJobs(const google::protobuf::RepeatedPtrField<sim::v1::Job>& jobs,
                        const std::string& path, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_LOAD_H_
