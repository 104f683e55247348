#include "core/policies/service.h"

#include <algorithm>

namespace berth {

int64_t SizeOf(const ClusterState& state, const Job& job) {
  int64_t devices = 0, cpu_millis = 0;
  for (const Group& group : job.groups) {
    const ShapeEntry& shape = state.interner().Shape(group.shape);
    devices += (shape.device_count * kWhole + shape.share) * group.replicas;
    cpu_millis += shape.resources[kCpu] * group.replicas;
  }
  return std::max<int64_t>(devices > 0 ? devices : cpu_millis, 1);
}

Duration Served(const Job& job, Time now) {
  const JobStatus& status = job.status;
  const bool runs = status.state == JobState::kRunning && status.start < now;
  return status.attained + (runs ? RunTime(status, now) : absl::ZeroDuration());
}

std::optional<int64_t> RemainingSeconds(const Job& job, Time now) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const RunPrediction& known = job.prediction;
  const bool limited = job.walltime != absl::InfiniteDuration();
  if (!known.Known() && !limited) return std::nullopt;
  const int64_t walltime = limited ? absl::ToInt64Seconds(job.walltime) : 0;
  const int64_t served = absl::ToInt64Seconds(Served(job, now));
  const int64_t expected = known.Known() ? known.expected_s : walltime;
  if (served < expected) return std::min(expected - served, kMost);
  const int64_t longest = std::max<int64_t>(known.high_s, walltime);
  return std::clamp<int64_t>(served < longest ? longest - served : served, 1, kMost);
}

}  // namespace berth
