// Runs a cluster forward in simulated time, to see when pending jobs will start.
//
// Nothing new is submitted and nothing fails. A job runs for its walltime times `walltime_part`, or
// for `without_walltime` if it has none. With `predicted`, a job with a prediction runs for the
// expected time. A job that has already run longer ends at once. Silent nodes stay silent.
#ifndef BERTH_OFFLINE_WHATIF_FORECAST_H_
#define BERTH_OFFLINE_WHATIF_FORECAST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

struct ForecastOptions {
  Duration horizon = absl::Hours(168);
  double walltime_part = 1;  // above 0, at most 1
  Duration without_walltime = absl::Hours(24);
  bool predicted = false;
};

using AmountsByKind = std::map<std::string, double>;  // by resource, in units

struct Forecast {
  // For jobs that had not started: the time from the beginning until all their tasks first had a
  // place. No entry: not within the horizon.
  std::map<JobId, Duration> starts;
  // By leaf queue and resource, the mean amount over the horizon that its tasks held.
  std::map<std::string, AmountsByKind> held;
  AmountsByKind capacity;  // at the beginning
  int64_t evictions = 0;   // tasks
  int64_t cycles = 0;
};

// Whether Forecast::starts includes the job.
bool Waits(const Job& job);

// Starts from the present state of the cluster. INTERNAL for a bug of Berth.
absl::StatusOr<Forecast> RunForecast(SimCluster* cluster, const ForecastOptions& options);

}  // namespace berth

#endif  // BERTH_OFFLINE_WHATIF_FORECAST_H_
