// Runs a scenario: loads it, takes its steps, returns the result. The engine part of berth-sim as a
// library.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_RUNNER_H_
#define BERTH_OFFLINE_SIM_SCENARIO_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/result.pb.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

struct RunOptions {
  bool tasks_each_cycle = true;  // CycleResult::tasks
  bool check_consistency = false;
  // Not 0: shuffles the declarations of the scenario, and reloads the state in an arbitrary order.
  // The result must not change.
  uint64_t shuffle_seed = 0;
};

inline constexpr int64_t kMaxScenarioCycles = 1'000'000;

struct ScenarioRun {
  sim::v1::ScenarioResult result;
  // The actual values for each expectation, by path ("expect", "steps[3].expect").
  std::map<std::string, sim::v1::Expectation> actual;
};

// Errors begin with the path of the part that is wrong or cannot be done.
absl::StatusOr<ScenarioRun> RunScenario(const sim::v1::Scenario& scenario,
                                        const RunOptions& options);

// Runs it twice unchanged and several times shuffled. INTERNAL, with the first difference, if the
// results differ. Otherwise returns the first run.
absl::StatusOr<ScenarioRun> CheckScenario(const sim::v1::Scenario& scenario,
                                          const RunOptions& options);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_RUNNER_H_
