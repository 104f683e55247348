// Meters: amounts times time, exactly. Amounts are integers (milli-cores, bytes, thousandths of a
// device), times are milliseconds, and their products are summed in 128 bits: no sum is rounded,
// and none overflows.
//
//   a rate of 2000 from 1000 ms, 3000 from 1500 ms, read at 2500 ms     2000 * 500 + 3000 * 1000
#ifndef BERTH_CORE_HISTORY_METER_H_
#define BERTH_CORE_HISTORY_METER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/model/ids.h"

namespace berth {

using AmountTime = absl::int128;  // amount * milliseconds

inline constexpr int64_t kMsPerMinute = 60'000;
inline constexpr int64_t kMsPerHour = 60 * kMsPerMinute;
inline constexpr int64_t kMsPerDay = 24 * kMsPerHour;

// Rounded down, also before 1970.
inline int64_t MsOf(Time time) {
  const Duration since = time - absl::UnixEpoch();
  return absl::ToInt64Milliseconds(absl::Floor(since, absl::Milliseconds(1)));
}
inline Time TimeOfMs(int64_t ms) { return absl::FromUnixMillis(ms); }
// The begin of the period of that width.
constexpr int64_t PeriodOf(int64_t ms, int64_t width) {
  const int64_t rest = ms % width;
  return ms - (rest < 0 ? rest + width : rest);
}

template <size_t kRates, size_t kExtra = 0>
struct Meter {
  std::array<int64_t, kRates> rate{};
  int64_t since_ms = 0;  // `rate` holds since then
  // Until then: of each rate, and then what is only added.
  std::array<AmountTime, kRates + kExtra> sum{};

  void AddUp(int64_t now_ms) {
    const int64_t elapsed = now_ms - since_ms;
    for (size_t i = 0; elapsed != 0 && i < kRates; ++i) {
      if (rate[i] != 0) sum[i] += AmountTime(rate[i]) * elapsed;
    }
    since_ms = now_ms;
  }
  void Clear(int64_t now_ms) {
    sum.fill(0);
    since_ms = now_ms;
  }
  bool AnyRate() const {
    return std::any_of(rate.begin(), rate.end(), [](int64_t value) { return value != 0; });
  }
  bool AnySum() const {
    return std::any_of(sum.begin(), sum.end(), [](AmountTime value) { return value != 0; });
  }
  bool operator==(const Meter&) const = default;
};

// Who uses a resource. The rates, then what is added when an attempt is cut.
enum class Measure : uint8_t { kHeld, kPaused, kReserved, kWaiting, kPreempted, kFaulted };
inline constexpr size_t kMeasuredRates = 4;
inline constexpr size_t kMeasures = 6;
using UsageMeter = Meter<kMeasuredRates, kMeasures - kMeasuredRates>;

// What capacity is used for: the parts of total + overcommitted.
enum class CapacityPart : uint8_t {
  kTotal,
  kOvercommitted,
  kHeld,
  kReserved,
  kFree,
  kFragmented,
  kCordoned,
  kDown,
  kUnhealthy,
};
inline constexpr size_t kCapacityParts = 9;
using CapacityMeter = Meter<kCapacityParts>;
using CapacityParts = std::array<int64_t, kCapacityParts>;

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_METER_H_
