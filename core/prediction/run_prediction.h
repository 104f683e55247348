// The expected run time of a job, based on finished runs (docs/developers/prediction.md).
#ifndef BERTH_CORE_PREDICTION_RUN_PREDICTION_H_
#define BERTH_CORE_PREDICTION_RUN_PREDICTION_H_

#include <cstdint>

namespace berth {

// Whole seconds, at most the requested walltime (rounded up to a second).
struct RunPrediction {
  int32_t expected_s = 0;  // mean, rounded up; 0: unknown, and all others are 0
  int32_t harmonic_s = 0;  // 1 / mean of 1 / max(run, 10 s): low if it may end very early
  int32_t low_s = 0;       // exceeded with a probability of nine tenths
  int32_t high_s = 0;      // exceeded with a probability of one tenth
  bool Known() const { return expected_s > 0; }
  bool operator==(const RunPrediction&) const = default;
};

// The properties from which a run is predicted.
struct RunRequest {
  int64_t walltime_s = 0;  // rounded up; 0 = none
  int64_t devices = 0;     // of all tasks, in thousandths
  int64_t cpu_millis = 0;  // of all tasks
  bool operator==(const RunRequest&) const = default;
};

}  // namespace berth

#endif  // BERTH_CORE_PREDICTION_RUN_PREDICTION_H_
