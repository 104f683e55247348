#include "server/history/resource_time.h"

#include <limits>
#include <string>

namespace berth {
namespace {

constexpr int64_t kMsPerSecond = 1000;
constexpr int64_t kBytesPerMebibyte = int64_t{1} << 20;

int64_t Divided(AmountTime sum, int64_t by) {
  const AmountTime units = sum / by;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return units > kMost ? kMost : static_cast<int64_t>(units);
}

}  // namespace

void SetResourceTime(absl::string_view resource, AmountTime sum, v1::ResourceTime* out) {
  if (sum == 0) return;
  if (resource == "cpu") return out->set_cpu_milli_seconds(Divided(sum, kMsPerSecond));
  if (resource == "memory") {
    return out->set_memory_mebibyte_seconds(Divided(sum, kMsPerSecond * kBytesPerMebibyte));
  }
  if (resource == kScratchName) {
    return out->set_scratch_mebibyte_seconds(Divided(sum, kMsPerSecond * kBytesPerMebibyte));
  }
  (*out->mutable_count_milli_seconds())[std::string(resource)] = Divided(sum, kMsPerSecond);
}

}  // namespace berth
