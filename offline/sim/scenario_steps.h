// Steps that change the cluster. The runner handles time and expectations.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_STEPS_H_
#define BERTH_OFFLINE_SIM_SCENARIO_STEPS_H_

#include <string>

#include "absl/status/status.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

// Errors begin with `path`.
absl::Status ApplyStep(const sim::v1::Step& step, const std::string& path, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_STEPS_H_
