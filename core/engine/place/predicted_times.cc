#include "core/engine/place/predicted_times.h"

#include <algorithm>

#include "core/model/state_editor.h"

namespace berth {

PredictedTimes::PredictedTimes(ClusterState& state, RunLevel level, Time now)
    : state_(state), level_(level) {
  if (level == RunLevel::kWalltime) return;
  std::vector<JobId> running;
  state.queues().ForEach([&](QueueId, const Queue& queue) {
    for (const OrderKey& key : queue.occupying_jobs) running.push_back(key.job);
  });
  for (JobId id : running) {
    const Job& job = state.jobs().At(id);
    const Time from = std::max(job.status.start, job.status.bound);
    if (from != absl::InfinitePast()) Set(job, now - from - job.status.pause.total);
  }
  any_ = !before_.empty();
}

PredictedTimes::~PredictedTimes() {
  StateEditor editor(state_, EditMode::kTentative);
  for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
    editor.TryWalltime(it->first, it->second);
  }
}

void PredictedTimes::Take(JobId waits) {
  if (level_ != RunLevel::kWalltime) Set(state_.jobs().At(waits), absl::ZeroDuration());
}

Duration PredictedTimes::RunOf(const Job& job, Duration elapsed) const {
  const RunPrediction& known = job.prediction;
  for (int32_t seconds : {known.low_s, known.expected_s, known.high_s}) {
    if (level_ == RunLevel::kExpected && seconds < known.expected_s) continue;
    const Duration run = std::min(absl::Seconds(seconds), job.walltime);
    if (run > elapsed) return run;
  }
  return job.walltime;
}

void PredictedTimes::Set(const Job& job, Duration elapsed) {
  if (!job.prediction.Known()) return;
  const Duration run = RunOf(job, elapsed);
  before_.emplace_back(job.id, job.walltime);
  StateEditor(state_, EditMode::kTentative).TryWalltime(job.id, run);
}

}  // namespace berth
