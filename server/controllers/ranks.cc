#include "server/controllers/ranks.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// Indexes in the job, by rank.
std::vector<uint32_t> MembersByRank(const Job& job) {
  std::vector<uint32_t> members;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (Occupies(task.state) && !Releasing(task)) members.push_back(i);
  }
  const auto before = [&](uint32_t a, uint32_t b) { return job.tasks[a].rank < job.tasks[b].rank; };
  if (!std::is_sorted(members.begin(), members.end(), before)) {  // it grew, or replaced some
                                                                  // members
    std::stable_sort(members.begin(), members.end(), before);
  }
  return members;
}

}  // namespace

Ranks ComputeRanks(const Job& job) {
  Ranks ranks;
  ranks.tasks.resize(job.tasks.size());
  const std::vector<uint32_t> members = MembersByRank(job);
  if (!members.empty()) ranks.master = members.front();
  ranks.world_size = static_cast<int32_t>(members.size());
  absl::flat_hash_map<NodeId, int32_t> numbers;  // only looked up, never iterated
  for (uint32_t i : members) {
    const Task& task = job.tasks[i];
    const auto next = static_cast<int32_t>(ranks.nodes.size());
    const auto [number, is_new] = numbers.try_emplace(task.node, next);
    if (is_new) {
      ranks.nodes.push_back(task.node);
      ranks.node_members.push_back(0);
    }
    const auto node = static_cast<size_t>(number->second);
    ranks.tasks[i] = {
        .rank = task.rank, .node_rank = number->second, .local_rank = ranks.node_members[node]++};
  }
  return ranks;
}

}  // namespace berth
