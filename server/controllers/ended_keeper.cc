#include "server/controllers/ended_keeper.h"

#include <algorithm>
#include <vector>

#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kTellAgain = absl::Minutes(1);

int64_t EndedTasks(const ClusterState& state) {
  return state.tasks_in(TaskState::kSucceeded) + state.tasks_in(TaskState::kFailed);
}

int64_t EndedTasksOf(const Job& job) {
  const GroupTally tally = TallyOf(job);
  return tally.In(TaskState::kSucceeded) + tally.In(TaskState::kFailed);
}

}  // namespace

// The jobs that hold this many ended tasks together, if there are any; first those that would be
// deleted first anyway.
std::vector<JobId> EndedKeeper::JobsToDelete(const ClusterState& state, int64_t tasks) {
  std::vector<JobId> jobs;
  int looked = 0;
  auto timer = state.timers().lower_bound(next_);
  for (; timer != state.timers().end() && tasks > 0; ++timer) {
    if (jobs.size() == kMaxDeleted || ++looked > max_examined_) break;
    const JobId id = timer->second;
    const Job& job = state.jobs().At(id);
    const int64_t held = EndedTasksOf(job);
    if (!Ended(job.status.state) || held == 0 || !state.Dependents(id).empty()) continue;
    jobs.push_back(id);
    tasks -= held;
  }
  const bool done = tasks <= 0 || timer == state.timers().end();
  next_ = done ? kFirst : *timer;
  return jobs;
}

void EndedKeeper::Tick() {
  if (posted_) return;
  const int64_t ended =
      loop_->Read([](const ClusterState& state, uint64_t) { return EndedTasks(state); });
  if (ended <= most_) return;
  posted_ = loop_->Post([this](Turn& turn) { Look(turn); }, CommandClass::kEssential).ok();
}

void EndedKeeper::Look(Turn& turn) {
  posted_ = false;
  const int64_t ended = EndedTasks(turn.state());
  const std::vector<JobId> jobs = JobsToDelete(turn.state(), ended - most_);
  for (JobId id : jobs) {
    const absl::Status status = turn.Emit(JobDeleted{id});
    if (!status.ok()) LogError("an ended job cannot be deleted", {{"error", status}});
  }
  if (jobs.empty() || turn.now() - told_ < kTellAgain) return;
  told_ = turn.now();
  LogWarn("ended jobs are deleted before their time to live is over",
          {{"jobs", jobs.size()},
           {"ended_tasks", ended},
           {"at_most", most_},
           {"see", "limits.activeTasks, finishedJobTtl"}});
}

}  // namespace berth
