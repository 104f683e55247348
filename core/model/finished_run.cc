#include "core/model/finished_run.h"

#include <algorithm>

namespace berth {
namespace {

constexpr int64_t kThousand = 1000;

int64_t WholeSeconds(Duration walltime) {
  if (walltime == absl::InfiniteDuration()) return 0;
  return std::max<int64_t>(absl::ToInt64Seconds(absl::Ceil(walltime, absl::Seconds(1))), 1);
}

void AddTasks(const TaskShape& shape, int64_t tasks, RunRequest* request) {
  request->cpu_millis += shape.cpu_millis * tasks;
  for (const DeviceRequest& devices : shape.devices) {
    request->devices += (devices.share > 0 ? devices.share : devices.count * kThousand) * tasks;
  }
}

}  // namespace

RunPrediction PredictionFor(const ClusterState& state, const JobSpec& spec) {
  if (state.run_history().size() == 0) return {};
  RunRequest request{.walltime_s = WholeSeconds(spec.walltime)};
  for (const GroupSpec& group : spec.groups) AddTasks(group.shape, group.replicas, &request);
  return state.run_history().Predict(spec.user, request);
}

Duration RunOf(const Job& job) {
  const JobStatus& status = job.status;
  const bool ran = status.start != absl::InfinitePast() && status.end > status.start;
  return ran ? RunTime(status, status.end) : absl::ZeroDuration();
}

FinishedRun FinishedRunOf(const ClusterState& state, const Job& job) {
  FinishedRun run{.user = job.user, .request = {.walltime_s = WholeSeconds(job.walltime)}};
  for (const Group& group : job.groups) {
    AddTasks(state.interner().Shape(group.shape).shape, group.replicas, &run.request);
  }
  run.run_ms = std::max<int64_t>(absl::ToInt64Milliseconds(RunOf(job)), 1);
  return run;
}

}  // namespace berth
