// A queue's line: the expected use of its pending jobs, and how much work has overtaken each of
// them. Ageing is based on it instead of on a clock (core/engine/order/rank_stage.h).
//
// A job's work is its expected run time in seconds (its walltime without a prediction, an hour
// without either, at most 30 days) times its dominant share of the cluster's capacity in
// millionths. `line` sums the work of all jobs that came. What has left the line, by starting or
// otherwise, is what came minus what is pending. In order of arrival, a job starts when everything
// that came before it has left:
//
//   came before J: 100    came since: 40    pending: J itself 10, and 60 that came before J
//   left: 150 - 70 = 80   J is not overtaken on balance: 80 - 100 < 0
//   later all 60 still pend, and 50 more have come and left: 200 - 70 = 130: overtaken by 30
//
// So J's extra wait, compared with order of arrival, is bounded by the work that may overtake it.
// Only sums are kept, and the unit cancels out: walltimes that are all ten times too long change
// nothing.
#ifndef BERTH_CORE_MODEL_LINE_H_
#define BERTH_CORE_MODEL_LINE_H_

#include <cstdint>

#include "core/model/cluster_state.h"

namespace berth {

// The longest line decays linearly to zero while this many times as much work arrives.
inline constexpr int64_t kLineMemory = 30;
// Of one job: the whole cluster for 30 days.
inline constexpr int64_t kMaxWork = int64_t{30} * 86'400 * 1'000'000;
// At this length a line stops growing, and its jobs stop ageing.
inline constexpr int64_t kMaxLine = int64_t{1} << 62;

inline bool InLine(JobState state) { return state == JobState::kPending; }

// At least 1.
int64_t WorkOf(const ClusterState& state, const Job& job);

// The work that came before the job; for a job that was held, before its release.
inline int64_t WorkBefore(const Job& job) {
  return job.status.line_from > 0 ? job.status.line_from : job.line.before;
}

// The work that has left the line since the job came, minus the work that came before it: negative
// until that has left. Larger for older jobs than for younger ones.
inline int64_t Overtaken(const Queue& queue, const Job& job) {
  return queue.line - queue.line_waits - WorkBefore(job);
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_LINE_H_
