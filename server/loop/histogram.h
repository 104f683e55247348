// Histogram: durations, without a lock. Buckets double from 1 us to about 67 s.
#ifndef BERTH_SERVER_LOOP_HISTOGRAM_H_
#define BERTH_SERVER_LOOP_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace berth {

// Thread-safe. A reader may see the sum and the buckets at slightly different moments.
class Histogram {
 public:
  static constexpr size_t kBuckets = 27;  // and one for longer durations
  // Upper bound of bucket `i`, in seconds.
  static double Bound(size_t i) { return static_cast<double>(uint64_t{1} << i) * 1e-6; }

  void Observe(absl::Duration elapsed) {
    const int64_t nanos = absl::ToInt64Nanoseconds(elapsed);
    const auto micros = nanos <= 0 ? uint64_t{0} : (static_cast<uint64_t>(nanos) + 999) / 1000;
    const size_t bucket = micros <= 1 ? 0 : static_cast<size_t>(std::bit_width(micros - 1));
    counts_[bucket < kBuckets ? bucket : kBuckets].fetch_add(1, std::memory_order_relaxed);
    nanos_.fetch_add(nanos, std::memory_order_relaxed);
  }

  uint64_t Count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  double SumSeconds() const {
    return static_cast<double>(nanos_.load(std::memory_order_relaxed)) * 1e-9;
  }

 private:
  std::array<std::atomic<uint64_t>, kBuckets + 1> counts_{};
  std::atomic<int64_t> nanos_{0};
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_HISTOGRAM_H_
