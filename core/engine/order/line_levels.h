// LineLevels: how far pending jobs of each queue have been overtaken (core/model/line.h), as levels
// by which orders by length move them forward. A job ages by what overtook it, relative to the
// length of its queue's line. So in a quiet week no job ages, in a flood no job ages sooner than
// the flood delays every job, and no parameter has to fit the cluster.
//
//   longest line 1000, overtaking 50 (thousandths):   a job overtaken by 120 is in level 2: an
//   order takes it for a quarter as long;  by 300 and more in level 6: it goes before all others
//
// From level 6 on a job is served by age. It waits at most as long as in order of arrival, plus the
// time that the cluster takes for 6 * overtaking / 1000 of the longest line: only older jobs can go
// before it then.
//
// A level follows from current facts. It may fall again when the longest line grows, or when placed
// jobs return to the queue. Part of planning, kept in EngineCache.
#ifndef BERTH_CORE_ENGINE_ORDER_LINE_LEVELS_H_
#define BERTH_CORE_ENGINE_ORDER_LINE_LEVELS_H_

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/model/cluster_state.h"

namespace berth {

inline constexpr int kLineLevels = 6;

// 0..kLineLevels. `overtaking`: thousandths of the longest line for each level; > 0.
int LineLevelOf(const Queue& queue, const Job& job, int32_t overtaking);

// Not thread-safe.
class LineLevels {
 public:
  // Starts to follow the job, which has not ended; returns its current level. O(log jobs).
  int Follow(const Queue& queue, const Job& job, int32_t overtaking);
  // Appends to `jobs` the followed jobs whose level changed since the last call.
  // O(these * log jobs) and, from time to time, O(jobs) for those that have ended.
  void Move(const ClusterState& state, const Queue& queue, int32_t overtaking,
            std::vector<JobId>* jobs);

 private:
  // By what came before them: jobs of higher levels are older, so each list is a stretch of the
  // line. May hold jobs that have ended or changed position.
  using Stretch = absl::btree_set<std::pair<int64_t, JobId>>;
  using Stretches = std::array<Stretch, kLineLevels + 1>;

  static void Sweep(const ClusterState& state, const Queue& queue, Stretches* stretches);

  std::map<QueueId, Stretches> queues_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_ORDER_LINE_LEVELS_H_
