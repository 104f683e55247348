#include "server/controllers/ranks.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

bool IsMember(const Task& task, uint32_t epoch) {
  if (task.rank == kNoRank || Waits(task.state)) return false;
  if (epoch > 0 && task.epoch >= epoch) return task.epoch == epoch;
  return Occupies(task.state) && !Releasing(task);
}

// Indexes in the job, by rank.
std::vector<uint32_t> MembersByRank(const Job& job, uint32_t epoch) {
  std::vector<uint32_t> members;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (IsMember(job.tasks[i], epoch)) members.push_back(i);
  }
  const auto before = [&](uint32_t a, uint32_t b) { return job.tasks[a].rank < job.tasks[b].rank; };
  if (!std::is_sorted(members.begin(), members.end(), before)) {  // it grew, or replaced some
                                                                  // members
    std::stable_sort(members.begin(), members.end(), before);
  }
  return members;
}

std::optional<uint32_t> Coordinator(const Job& job) {
  for (const Group& group : job.groups) {
    if (group.coordinator) return group.first_task;
  }
  return std::nullopt;
}

}  // namespace

Ranks ComputeRanks(const Job& job, uint32_t epoch) {
  Ranks ranks;
  ranks.tasks.resize(job.tasks.size());
  const std::vector<uint32_t> members = MembersByRank(job, epoch);
  ranks.master = Coordinator(job);
  if (!ranks.master.has_value() && !members.empty()) ranks.master = members.front();
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
