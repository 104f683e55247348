#include "core/engine/place/resume_stage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/pauses.h"

namespace berth {
namespace {

struct Waiting {
  OrderKey order;
  std::vector<uint32_t> tasks;
};

// Those that take turns: who has waited longest goes on first.
OrderKey ResumeKeyOf(const ClusterState& state, const Job& job) {
  OrderKey key = HolderKeyOf(job);
  if (!TakesTurns(state, job)) return key;
  key.deadline = absl::InfinitePast();
  key.rank = absl::ToUnixNanos(job.status.pause.since);
  return key;
}

std::vector<Waiting> InOrder(const ClusterState& state) {
  std::vector<Waiting> jobs;
  for (const TaskKey& key : state.resuming()) {  // by job
    if (jobs.empty() || jobs.back().order.job != key.job) {
      jobs.push_back({ResumeKeyOf(state, state.jobs().At(key.job)), {}});
    }
    jobs.back().tasks.push_back(key.task);
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const Waiting& a, const Waiting& b) { return a.order < b.order; });
  return jobs;
}

// All its frozen tasks are on nodes that can be told.
bool AllReachable(const Job& job) {
  return std::none_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.state == TaskState::kLost && Frozen(task);
  });
}

}  // namespace

void RunResumes(Cycle& cycle) {
  const ClusterState& state = cycle.state();
  if (state.resuming().empty()) return;
  ResumeRoom room(state);
  for (Waiting& waiting : InOrder(state)) {
    const Job& job = state.jobs().At(waiting.order.job);
    cycle.CountWork(waiting.tasks.size());
    bool fits = AllReachable(job);
    for (const uint32_t task : waiting.tasks) {
      const bool has_room = room.Take(job, task);
      fits = fits && has_room;
    }
    if (!fits) continue;
    cycle.transaction().Decide(TasksResumed{.job = job.id, .tasks = std::move(waiting.tasks)});
  }
  cycle.transaction().Sync();
}

}  // namespace berth
