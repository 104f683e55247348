#include "server/controllers/ranks.h"

#include "absl/container/flat_hash_map.h"
#include "core/base/check.h"

namespace berth {

Ranks ComputeRanks(const Job& job) {
  Ranks ranks;
  ranks.tasks.resize(job.tasks.size());
  absl::flat_hash_map<NodeId, int32_t> numbers;  // only looked up, never iterated
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.state == TaskState::kPending || task.state == TaskState::kNominated) continue;
    const auto next = static_cast<int32_t>(ranks.nodes.size());
    const auto [number, is_new] = numbers.try_emplace(task.node, next);
    if (is_new) {
      ranks.nodes.push_back(task.node);
      ranks.node_members.push_back(0);
    }
    const auto node = static_cast<size_t>(number->second);
    ranks.tasks[i] = {.rank = ranks.world_size++,
                      .node_rank = number->second,
                      .local_rank = ranks.node_members[node]++};
  }
  return ranks;
}

uint32_t MasterTask(const Ranks& ranks) {
  uint32_t task = 0;
  while (task < ranks.tasks.size() && ranks.tasks[task].rank != 0) ++task;
  BERTH_CHECK(task < ranks.tasks.size());
  return task;
}

}  // namespace berth
