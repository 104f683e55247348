#include "offline/replay/network_model.h"

#include <algorithm>

namespace berth::replay {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

}  // namespace

double RingBytes(double bytes, int64_t workers) {
  if (workers < 2) return 0;
  const auto n = static_cast<double>(workers);
  return 2 * (n - 1) / n * bytes;
}

double IterationSeconds(const Training& training, int64_t workers, double gbps) {
  const double communication = RingBytes(training.bytes, workers) / (gbps * kBytesPerGigabit);
  return training.compute_s + std::max(0.0, communication - training.overlap * training.compute_s);
}

double RateOf(const Training& training, int64_t workers, double gbps) {
  return IterationSeconds(training, workers, training.reference_gbps) /
         IterationSeconds(training, workers, gbps);
}

}  // namespace berth::replay
