// LineLevels: how far waiting jobs of each queue have been overtaken (core/model/line.h), as levels
// by which orders by length draw them forward. So a job ages by what went before it, measured by
// how long the line of its queue gets: in a quiet week nobody ages, in a flood nobody ages sooner
// than the flood makes everybody wait, and no number has to fit the cluster.
//
//   longest line 1000, overtaking 50 (thousandths):   a job overtaken by 120 is in level 2: an
//   order takes it for a quarter as long;  by 300 and more in level 6: it goes before all others
//
// Served by age from there on, a job waits at most as long as in order of arrival, and as the
// cluster takes for 6 * overtaking / 1000 of the longest line: what can go before it then is older.
//
// A level follows from facts as they are, and may fall again: as the longest line grows, or what
// was placed comes back. Planning's, kept in EngineCache.
#ifndef BERTH_CORE_ENGINE_LINE_LEVELS_H_
#define BERTH_CORE_ENGINE_LINE_LEVELS_H_

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

// No thread safety.
class LineLevels {
 public:
  // The job, which has not ended, is to be followed; its level now. O(log jobs).
  int Follow(const Queue& queue, const Job& job, int32_t overtaking);
  // Jobs that are followed and have another level than at the last call, appended to `jobs`.
  // O(these * log jobs) and, from time to time, O(jobs) for those that have ended.
  void Move(const ClusterState& state, const Queue& queue, int32_t overtaking,
            std::vector<JobId>* jobs);

 private:
  // By what came before them: those of higher levels are older, each list a stretch of the line.
  // May hold jobs that have ended, or stand elsewhere by now.
  using Stretch = absl::btree_set<std::pair<int64_t, JobId>>;
  using Stretches = std::array<Stretch, kLineLevels + 1>;

  static void Sweep(const ClusterState& state, const Queue& queue, Stretches* stretches);

  std::map<QueueId, Stretches> queues_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LINE_LEVELS_H_
