// From a scenario to a cluster in the state that it describes.
//
// The state is brought about by events, in the order in which it could have come about: queues
// (still without bounds), nodes, HyperNodes, jobs by age and name with what their tasks have been
// through, then nominations, and at last what would have stood in the way: unhealthy devices,
// cordons, silence, limits, closed queues. So everything passes the checks of Apply, and names
// decide about ids.
#ifndef BERTH_CLIENTS_SIM_SCENARIO_LOAD_H_
#define BERTH_CLIENTS_SIM_SCENARIO_LOAD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "clients/sim/sim_cluster.h"

namespace berth {

// 2026-01-01T00:00:00Z: when every scenario starts.
Time ScenarioStart();

inline constexpr int kMaxScenarioNodes = 100'000;
inline constexpr int64_t kMaxScenarioTasks = 1'000'000;

// INVALID_ARGUMENT or UNIMPLEMENTED with the path of what is wrong before the text.
absl::Status LoadScenario(const sim::v1::Scenario& scenario, SimCluster* cluster);

// The steps that change what is declared use the same ways in.
absl::Status CreateQueue(const sim::v1::Queue& queue, const std::string& path, SimCluster* cluster);
absl::Status UpdateQueue(const sim::v1::Queue& queue, const std::string& path, SimCluster* cluster);
// Registers every node of the pattern, again if it is known.
absl::Status RegisterNodes(const sim::v1::Node& node, bool healthy, const std::string& path,
                           SimCluster* cluster);
// All at once: made, or changed where they are known; and these deleted.
absl::Status ChangeHyperNodes(
    const google::protobuf::RepeatedPtrField<sim::v1::HyperNode>& hyper_nodes,
    const std::vector<std::string>& deleted, const std::string& path, SimCluster* cluster);
// Submits jobs in the order of age and name, with what their tasks are already.
absl::Status SubmitJobs(const google::protobuf::RepeatedPtrField<sim::v1::Job>& jobs,
                        const std::string& path, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_SCENARIO_LOAD_H_
