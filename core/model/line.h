// A queue's line: what its jobs that wait are expected to use, and how far each of them has been
// overtaken. Ageing goes by it, and by no clock (core/engine/rank_stage.h).
//
// A job's work is its expected run in seconds (its walltime where nothing is predicted, an hour
// where neither is known, 30 days at most) times its dominant share of the cluster's capacity in
// millionths. `line` sums the work of all that came. What has left the line, by starting or
// otherwise, is what came less what waits. Served in order of arrival, a job starts when all that
// came before it has left:
//
//   came before J: 100    came since: 40    waits now: J itself 10, and 60 that came before J
//   left: 150 - 70 = 80   J is not overtaken on balance: 80 - 100 < 0
//   later all 60 wait still, and 50 more have come and left: 200 - 70 = 130: overtaken by 30
//
// So what J waits longer than in order of arrival is bounded by how far it may be overtaken. Sums
// alone are kept, and the same unit cancels out: walltimes that are all ten times too long change
// nothing.
#ifndef BERTH_CORE_MODEL_LINE_H_
#define BERTH_CORE_MODEL_LINE_H_

#include <cstdint>

#include "core/model/cluster_state.h"

namespace berth {

// The longest line is forgotten evenly, all of it by the time that so many times as much has come.
inline constexpr int64_t kLineMemory = 30;
// Of one job: of the whole cluster for 30 days.
inline constexpr int64_t kMostWork = int64_t{30} * 86'400 * 1'000'000;
// A line of so much grows no more, and nobody in it ages.
inline constexpr int64_t kMostLine = int64_t{1} << 62;

inline bool InLine(JobState state) { return state == JobState::kPending; }

// At least 1.
int64_t WorkOf(const ClusterState& state, const Job& job);

// What came before the job: of a job that was on hold, before its release.
inline int64_t CameBefore(const Job& job) {
  return job.status.line_from > 0 ? job.status.line_from : job.line.before;
}

// What has left the line since the job came, less what came before it: negative until those are
// through. More for older jobs than for younger ones.
inline int64_t Overtaken(const Queue& queue, const Job& job) {
  return queue.line - queue.line_waits - CameBefore(job);
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_LINE_H_
