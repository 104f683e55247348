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

// Members of earlier epochs that have ended since: as many as the epoch's world lacks, the latest.
// Without them a group that joined another would look for the rendezvous elsewhere.
void AddEnded(const Job& job, uint32_t epoch, std::vector<uint32_t>* members) {
  size_t world = 0;
  std::vector<bool> taken(job.tasks.size(), false);
  for (const uint32_t i : *members) {
    const Task& task = job.tasks[i];
    if (task.epoch == epoch) world = task.world;
    if (task.rank < taken.size()) taken[task.rank] = true;
  }
  if (members->size() >= world) return;
  std::vector<uint32_t> gone;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool known = task.attempt > 0 && !Reserves(task.state) && task.epoch != epoch;
    if (known && task.rank < taken.size() && !taken[task.rank]) gone.push_back(i);
  }
  std::stable_sort(gone.begin(), gone.end(),
                   [&](uint32_t a, uint32_t b) { return job.tasks[a].since > job.tasks[b].since; });
  for (const uint32_t i : gone) {
    if (members->size() == world) return;
    if (taken[job.tasks[i].rank]) continue;
    taken[job.tasks[i].rank] = true;
    members->push_back(i);
  }
}

// Indexes in the job, by rank.
std::vector<uint32_t> MembersByRank(const Job& job, uint32_t epoch) {
  std::vector<uint32_t> members;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (IsMember(job.tasks[i], epoch)) members.push_back(i);
  }
  if (epoch > 0) AddEnded(job, epoch, &members);
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

// Independent tasks are replaced alone, at any time: members of a rigid group cannot rely on them.
// With a rendezvous group they can, as the job restarts when its rank 0 is lost.
std::optional<uint32_t> HostOfRigid(const Job& job, uint32_t epoch) {
  std::optional<uint32_t> host;
  if (epoch == 0) return host;
  for (const Group& group : job.groups) {
    if (group.membership == GangMembership::kRendezvous) return std::nullopt;
    if (MembershipOf(group) != GangMembership::kRigid) continue;
    const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
    for (uint32_t i = group.first_task; i < end; ++i) {
      if (job.tasks[i].epoch != epoch || !IsMember(job.tasks[i], epoch)) continue;
      if (!host.has_value() || job.tasks[i].rank < job.tasks[*host].rank) host = i;
    }
  }
  return host;
}

}  // namespace

Ranks ComputeRanks(const Job& job, uint32_t epoch) {
  Ranks ranks;
  ranks.tasks.resize(job.tasks.size());
  const std::vector<uint32_t> members = MembersByRank(job, epoch);
  ranks.master = Coordinator(job);
  if (!ranks.master.has_value()) ranks.master = HostOfRigid(job, epoch);
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
