// Histogram: durations, without a lock. Buckets double from a unit, 26 times: from 1 us to about
// 67 s, or from 1 ms to about 19 h.
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

  Histogram() : Histogram(absl::Microseconds(1)) {}
  explicit Histogram(absl::Duration unit) : unit_nanos_(absl::ToInt64Nanoseconds(unit)) {}

  // Upper bound of bucket `i`, in seconds.
  double Bound(size_t i) const {
    return static_cast<double>(uint64_t{1} << i) * (static_cast<double>(unit_nanos_) / 1e9);
  }

  void Observe(absl::Duration elapsed) {
    const int64_t nanos = absl::ToInt64Nanoseconds(elapsed);
    const auto unit = static_cast<uint64_t>(unit_nanos_);
    const auto units = nanos <= 0 ? uint64_t{0} : (static_cast<uint64_t>(nanos) + unit - 1) / unit;
    const size_t bucket = units <= 1 ? 0 : static_cast<size_t>(std::bit_width(units - 1));
    counts_[bucket < kBuckets ? bucket : kBuckets].fetch_add(1, std::memory_order_relaxed);
    nanos_.fetch_add(nanos, std::memory_order_relaxed);
  }

  uint64_t Count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  double SumSeconds() const {
    return static_cast<double>(nanos_.load(std::memory_order_relaxed)) * 1e-9;
  }

 private:
  const int64_t unit_nanos_;
  std::array<std::atomic<uint64_t>, kBuckets + 1> counts_{};
  std::atomic<int64_t> nanos_{0};
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_HISTOGRAM_H_
