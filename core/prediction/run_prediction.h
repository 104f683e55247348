// How long a job will run, as far as finished runs tell (docs/prediction.md).
#ifndef BERTH_CORE_PREDICTION_RUN_PREDICTION_H_
#define BERTH_CORE_PREDICTION_RUN_PREDICTION_H_

#include <cstdint>

namespace berth {

// Whole seconds, none above the requested walltime (rounded up to a second).
struct RunPrediction {
  int32_t expected_s = 0;  // mean, rounded up; 0: nothing is known, and all others are 0
  int32_t harmonic_s = 0;  // 1 / mean of 1 / max(run, 10 s): low if it may end at once
  int32_t low_s = 0;       // it runs longer with nine chances of ten
  int32_t high_s = 0;      // with one
  bool Known() const { return expected_s > 0; }
  bool operator==(const RunPrediction&) const = default;
};

// What a run is predicted by.
struct RunRequest {
  int64_t walltime_s = 0;  // rounded up; 0 = none
  int64_t devices = 0;     // of all tasks, in thousandths
  int64_t cpu_millis = 0;  // of all tasks
  bool operator==(const RunRequest&) const = default;
};

}  // namespace berth

#endif  // BERTH_CORE_PREDICTION_RUN_PREDICTION_H_
