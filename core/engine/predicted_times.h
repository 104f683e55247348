// PredictedTimes: for a question, jobs are taken to run as long as predicted instead of for their
// walltimes.
#ifndef BERTH_CORE_ENGINE_PREDICTED_TIMES_H_
#define BERTH_CORE_ENGINE_PREDICTED_TIMES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/cluster_state.h"

namespace berth {

enum class RunLevel : uint8_t { kLow, kExpected, kWalltime };  // of RunPrediction

// While this lives; then all is as before. It must outlive the cycles that ask.
class PredictedTimes {
 public:
  // Of what runs now. A job that has run for longer already is taken to run for the next longer of
  // low, expected, high and its walltime. kWalltime changes nothing. O(jobs that run).
  PredictedTimes(ClusterState& state, RunLevel level, Time now);
  ~PredictedTimes();
  PredictedTimes(const PredictedTimes&) = delete;
  PredictedTimes& operator=(const PredictedTimes&) = delete;

  // Of a job that waits.
  void Take(JobId waits);
  // Of some job that runs something is known.
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

#endif  // BERTH_CORE_ENGINE_PREDICTED_TIMES_H_
