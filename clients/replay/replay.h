// Runs a workload through the engine in simulated time (docs/replay.md).
#ifndef BERTH_CLIENTS_REPLAY_REPLAY_H_
#define BERTH_CLIENTS_REPLAY_REPLAY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "clients/replay/job_template.h"
#include "clients/replay/progress.h"
#include "clients/replay/workload.h"

namespace berth::replay {

// What became of one job. Times since the workload's beginning of time.
struct Outcome {
  // When all its tasks first had a place; infinite: never.
  Duration first_start = absl::InfiniteDuration();
  Duration end = absl::InfiniteDuration();
};

struct ReplayRun {
  std::vector<Outcome> outcomes;           // of Workload::jobs
  std::map<std::string, double> capacity;  // of the cluster: "cpu" in cores/1000, "gpu", ...
  // Amount times seconds: held by tasks, and of that by tasks that were evicted.
  std::map<std::string, double> held, lost;
  int64_t evictions = 0;
  int64_t cycles = 0;
};

// A cluster for `workload`: one node of so many cores.
sim::v1::Scenario OneMachine(int64_t cores);

struct ReplayOptions {
  JobTemplate jobs;              // how they are submitted
  Progress* progress = nullptr;  // null: jobs run as long as the workload says. Outlives the call
};

// The cluster: nodes, queues, HyperNodes and configuration of a scenario. INVALID_ARGUMENT if it
// has jobs or steps, or for a job whose queue is not declared; INTERNAL for a fault of ours.
absl::StatusOr<ReplayRun> Replay(const Workload& workload, const sim::v1::Scenario& cluster,
                                 const ReplayOptions& options = {});

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_REPLAY_H_
