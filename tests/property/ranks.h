#ifndef BERTH_TESTS_PROPERTY_RANKS_H_
#define BERTH_TESTS_PROPERTY_RANKS_H_

#include <vector>

#include "core/model/cluster_state.h"
#include "core/model/transitions.h"

namespace berth {

// Ranks of the members of a job are unique, and below the number of its tasks.
inline bool RanksAreUnique(const ClusterState& state) {
  bool unique = true;
  state.jobs().ForEach([&](JobId, const Job& job) {
    std::vector<bool> taken(job.tasks.size(), false);
    for (const Task& task : job.tasks) {
      if (!Occupies(task.state) || Releasing(task)) continue;
      unique = unique && task.rank < taken.size() && !taken[task.rank];
      if (unique) taken[task.rank] = true;
    }
  });
  return unique;
}

}  // namespace berth

#endif  // BERTH_TESTS_PROPERTY_RANKS_H_
