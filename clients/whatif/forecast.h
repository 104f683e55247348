// Runs a cluster forward in simulated time, to see when what waits will start.
//
// Nothing new is submitted and nothing fails. A job runs as long as its walltime says, times
// `walltime_part`; one without a walltime for `without_walltime`. With `predicted`, one of which
// that was predicted runs as long as is expected of it. One that has run longer than that already
// ends at once. Nodes that are silent stay so.
#ifndef BERTH_CLIENTS_WHATIF_FORECAST_H_
#define BERTH_CLIENTS_WHATIF_FORECAST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "clients/sim/sim_cluster.h"

namespace berth {

struct ForecastOptions {
  Duration horizon = absl::Hours(168);
  double walltime_part = 1;  // above 0, at most 1
  Duration without_walltime = absl::Hours(24);
  bool predicted = false;
};

using AmountsByKind = std::map<std::string, double>;  // by resource, in units

struct Forecast {
  // Jobs that had not started: when all their tasks first had a place, from the beginning on; not
  // there: not within the horizon.
  std::map<JobId, Duration> starts;
  // By leaf queue and by resource, the mean over the horizon of what its tasks held.
  std::map<std::string, AmountsByKind> held;
  AmountsByKind capacity;  // at the beginning
  int64_t evictions = 0;   // tasks
  int64_t cycles = 0;
};

// Which jobs Forecast::starts tells of.
bool Waits(const Job& job);

// From the cluster's present on. INTERNAL for a fault of ours.
absl::StatusOr<Forecast> RunForecast(SimCluster* cluster, const ForecastOptions& options);

}  // namespace berth

#endif  // BERTH_CLIENTS_WHATIF_FORECAST_H_
