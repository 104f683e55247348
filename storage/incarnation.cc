#include "storage/incarnation.h"

#include <algorithm>

namespace berth {
namespace {

constexpr uint64_t kBeginMs = 1'767'225'600'000;  // 2026-01-01T00:00Z
constexpr int kJobsPerMsBits = 10;
constexpr uint64_t kDayMs = 86'400'000;

}  // namespace

uint64_t NextIncarnation(uint64_t before, absl::Time now) {
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMillis(now), 0));
  if (ms > before) return ms;
  // The sum stays below 2^64, as clocks return less than 2^63.
  return before + kDayMs + ms % kDayMs;
}

JobId FirstJobOf(uint64_t incarnation) {
  if (incarnation <= kBeginMs) return JobId{1};
  // At most half of all uids, reached in 2162: a broken clock still leaves some.
  const uint64_t most = kLastJobId.value >> (kJobsPerMsBits + 1);
  return JobId{std::min(incarnation - kBeginMs, most) << kJobsPerMsBits};
}

}  // namespace berth
