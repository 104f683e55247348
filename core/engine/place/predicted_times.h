// PredictedTimes: for a what-if question, assumes that jobs run as long as predicted instead of
// their walltimes.
#ifndef BERTH_CORE_ENGINE_PLACE_PREDICTED_TIMES_H_
#define BERTH_CORE_ENGINE_PLACE_PREDICTED_TIMES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/cluster_state.h"

namespace berth {

enum class RunLevel : uint8_t { kLow, kExpected, kWalltime };  // of RunPrediction

// In effect while this object lives. It must outlive the cycles that use it.
class PredictedTimes {
 public:
  // For running jobs. A job that has already run longer is assumed to run for the next longer of
  // low, expected, high and its walltime. kWalltime changes nothing. O(running jobs).
  PredictedTimes(ClusterState& state, RunLevel level, Time now);
  ~PredictedTimes();
  PredictedTimes(const PredictedTimes&) = delete;
  PredictedTimes& operator=(const PredictedTimes&) = delete;

  // Also for this pending job.
  void Take(JobId waits);
  // At least one running job has a prediction.
  bool any() const { return any_; }

 private:
  Duration RunOf(const Job& job, Duration elapsed) const;
  void Set(const Job& job, Duration elapsed);

  ClusterState& state_;
  const RunLevel level_;
  bool any_ = false;
  std::vector<std::pair<JobId, Duration>> before_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_PREDICTED_TIMES_H_
