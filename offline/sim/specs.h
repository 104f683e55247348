// Converts parts of a scenario to types of the core. Errors begin with the path of the wrong field.
#ifndef BERTH_OFFLINE_SIM_SPECS_H_
#define BERTH_OFFLINE_SIM_SPECS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

namespace berth {

using google::protobuf::RepeatedPtrField;

absl::StatusOr<PolicyConfig> ToPolicyConfig(const sim::v1::Configuration& config,
                                            const std::string& path);

// The node with this name that the message describes. `healthy`: all devices are healthy.
absl::StatusOr<NodeSpec> ToNodeSpec(const sim::v1::Node& node, const std::string& name,
                                    bool healthy, const std::string& path);

// The parent must be in the state.
absl::StatusOr<QueueSpec> ToQueueSpec(const sim::v1::Queue& queue, const ClusterState& state,
                                      const std::string& path);

// The queue, and the jobs it depends on, must be in the state. `start`: of the scenario.
absl::StatusOr<JobSpec> ToJobSpec(const sim::v1::Job& job, const std::string& name,
                                  const ClusterState& state, Time start, const std::string& path);

// Every HyperNode of the pattern.
absl::StatusOr<std::vector<HyperNodeSpec>> ToHyperNodeSpecs(const sim::v1::HyperNode& hyper_node,
                                                            const std::string& path);

// "cpu" in cores, "memory" in bytes, others unchanged. "unlimited" is kMaxAmount if `bounded`,
// otherwise it is omitted.
using AmountTexts = google::protobuf::Map<std::string, std::string>;
absl::StatusOr<std::vector<NamedAmount>> ToAmounts(const AmountTexts& amounts, bool bounded,
                                                   const std::string& path);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SPECS_H_
