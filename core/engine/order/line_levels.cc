#include "core/engine/order/line_levels.h"

#include <algorithm>
#include <iterator>

#include "core/model/line.h"

namespace berth {
namespace {

// Null if it has ended, or its position in the line has changed.
const Job* AtPosition(const ClusterState& state, const std::pair<int64_t, JobId>& at) {
  const Job* job = state.jobs().Find(at.second);
  const bool stands = job != nullptr && !Ended(job->status.state) && WorkBefore(*job) == at.first;
  return stands ? job : nullptr;
}

}  // namespace

int LineLevelOf(const Queue& queue, const Job& job, int32_t overtaking) {
  const int64_t overtaken = Overtaken(queue, job);
  if (overtaken <= 0) return 0;
  constexpr __int128 kThousand = 1000;
  const __int128 step = std::max<__int128>(__int128{queue.longest_line} * overtaking, 1);
  return static_cast<int>(std::min<__int128>(overtaken * kThousand / step, kLineLevels));
}

int LineLevels::Follow(const Queue& queue, const Job& job, int32_t overtaking) {
  Stretches& stretches = queues_[queue.id];
  const std::pair<int64_t, JobId> at(WorkBefore(job), job.id);
  for (Stretch& stretch : stretches) stretch.erase(at);
  const int level = LineLevelOf(queue, job, overtaking);
  stretches[static_cast<size_t>(level)].insert(at);
  return level;
}

// Up from the oldest, down from the youngest.
void LineLevels::Move(const ClusterState& state, const Queue& queue, int32_t overtaking,
                      std::vector<JobId>* jobs) {
  const auto found = queues_.find(queue.id);
  if (found == queues_.end()) return;
  Stretches& stretches = found->second;
  Sweep(state, queue, &stretches);
  for (int level = 0; level < kLineLevels; ++level) {
    Stretch& stretch = stretches[static_cast<size_t>(level)];
    while (!stretch.empty()) {
      const auto at = *stretch.begin();
      const Job* job = AtPosition(state, at);
      const int now = job == nullptr ? 0 : LineLevelOf(queue, *job, overtaking);
      if (job != nullptr && now <= level) break;
      stretch.erase(stretch.begin());
      if (job == nullptr) continue;
      stretches[static_cast<size_t>(now)].insert(at);
      jobs->push_back(job->id);
    }
  }
  for (int level = kLineLevels; level > 0; --level) {
    Stretch& stretch = stretches[static_cast<size_t>(level)];
    while (!stretch.empty()) {
      const auto at = *stretch.rbegin();
      const Job* job = AtPosition(state, at);
      const int now = job == nullptr ? 0 : LineLevelOf(queue, *job, overtaking);
      if (job != nullptr && now >= level) break;
      stretch.erase(std::prev(stretch.end()));
      if (job == nullptr) continue;
      stretches[static_cast<size_t>(now)].insert(at);
      jobs->push_back(job->id);
    }
  }
}

void LineLevels::Sweep(const ClusterState& state, const Queue& queue, Stretches* stretches) {
  constexpr size_t kSlack = 64;
  size_t followed = 0;
  for (const Stretch& stretch : *stretches) followed += stretch.size();
  if (followed <= 2 * static_cast<size_t>(queue.active_jobs) + kSlack) return;
  for (Stretch& stretch : *stretches) {
    for (auto it = stretch.begin(); it != stretch.end();) {
      it = AtPosition(state, *it) == nullptr ? stretch.erase(it) : std::next(it);
    }
  }
}

}  // namespace berth
