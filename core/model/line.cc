#include "core/model/line.h"

#include <algorithm>

namespace berth {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kUnknownSeconds = 3600;
constexpr int64_t kMostSeconds = kMaxWork / kMillion;

int64_t ExpectedSeconds(const Job& job) {
  int64_t seconds = kUnknownSeconds;
  if (job.prediction.Known()) {
    seconds = job.prediction.expected_s;
  } else if (job.walltime != absl::InfiniteDuration()) {
    seconds = absl::ToInt64Seconds(job.walltime);
  }
  return std::clamp<int64_t>(seconds, 1, kMostSeconds);
}

// In millionths, of the dominant resource.
int64_t DominantPart(const ClusterState& state, const Job& job) {
  Resources sum;
  for (const Group& group : job.groups) {
    sum += state.interner().Shape(group.shape).resources.Times(group.replicas);
  }
  int64_t part = 1;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const int64_t capacity = state.capacity().amount[i];
    if (capacity <= 0 || sum.amount[i] <= 0) continue;
    const auto of = static_cast<__int128>(sum.amount[i]) * kMillion / capacity;
    part = std::max(part, of > kMillion ? kMillion : static_cast<int64_t>(of));
  }
  return part;
}

}  // namespace

int64_t WorkOf(const ClusterState& state, const Job& job) {
  return ExpectedSeconds(job) * DominantPart(state, job);
}

}  // namespace berth
