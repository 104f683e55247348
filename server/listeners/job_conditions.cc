#include "server/listeners/job_conditions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

// A task that was launched with the gang has at most as many attempts as the gang has starts. The
// first such task began to run when the gang did.
bool RestartedAlone(const Job& job, const Task& task) {
  return task.attempt > job.status.starts && task.start > job.status.start;
}

// First among the queue's pending jobs.
bool IsHead(const ClusterState& state, const Job& job) {
  const PendingIndex& pending = state.pending();
  for (const auto* list : {&pending.ready(), &pending.short_of_room(), &pending.held_back()}) {
    const auto classes = list->find(job.queue);
    if (classes == list->end()) continue;
    const ClassId first = classes->second.begin()->second;
    if (*pending.Class(first).jobs.begin() < KeyOf(job)) return false;
  }
  return true;
}

void AddCondition(v1::JobCondition::Kind kind, int32_t count, const std::string& detail,
                  v1::JobStatus* out) {
  v1::JobCondition* condition = out->add_conditions();
  condition->set_kind(kind);
  condition->set_count(count);
  condition->set_detail(detail);
}

}  // namespace

int32_t RestartedPiecemeal(const Job& job) {
  if (job.status.state != JobState::kRunning || job.tasks.size() < 2) return 0;
  int32_t running = 0;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    // Rigid gangs restart whole, and independent tasks do not need each other.
    const bool meets = MembershipOf(job.groups[GroupOf(job, i)]) == GangMembership::kRendezvous;
    if (!meets || job.tasks[i].state != TaskState::kRunning) continue;
    if (!RestartedAlone(job, job.tasks[i])) return 0;
    ++running;
  }
  return running >= 2 ? running : 0;
}

int32_t RefusedAtHead(const ClusterState& state, const Job& job) {
  const int32_t refused = job.status.refusals.starts + job.status.refusals.own;
  if (refused < kRepeatedlyRefused || Ended(job.status.state)) return 0;
  return job.status.state == JobState::kRunning || !IsHead(state, job) ? 0 : refused;
}

// One turn's effects on one job.
struct RestartWatch::InTurn {
  Time time;
  int32_t requeued = 0;
  bool gang = false;  // the job restarts as a whole
};

void RestartWatch::OnTurnDurable(uint64_t, std::shared_ptr<const std::vector<Event>> events,
                                 std::shared_ptr<const std::string>) {
  absl::MutexLock lock(&mutex_);
  std::map<JobId, InTurn> turn;
  for (const Event& event : *events) {
    if (const auto* report = std::get_if<TaskReported>(&event.body)) {
      if (report->state == ReportState::kRefused) {
        jobs_[report->task.job].refused.insert(report->task.task);
      }
    } else if (const auto* requeued = std::get_if<TasksRequeued>(&event.body)) {
      InTurn& job = turn[requeued->job];
      const auto known = jobs_.find(requeued->job);
      for (uint32_t task : requeued->tasks) {
        const bool refused = known != jobs_.end() && known->second.refused.erase(task) > 0;
        job.requeued += refused ? 0 : 1;
      }
      job.time = event.time;
    } else if (const auto* changed = std::get_if<JobStatusChanged>(&event.body)) {
      if (Ended(changed->status.state)) {
        jobs_.erase(changed->job);
        turn.erase(changed->job);
      } else if (changed->status.state == JobState::kRestarting) {
        turn[changed->job].gang = true;
        turn[changed->job].time = event.time;
      }
    }
  }
  for (const auto& [job, said] : turn) Note(job, said.gang ? 1 : said.requeued, said.time);
}

void RestartWatch::Note(JobId job, int32_t restarts, Time time) {
  if (restarts == 0) return;
  std::deque<Time>& times = jobs_[job].times;
  times.insert(times.end(), std::min(static_cast<size_t>(restarts), kMostKept), time);
  while (times.size() > kMostKept || times.front() <= time - kWindow) times.pop_front();
  if (jobs_.size() > swept_at_) Sweep(time);
}

void RestartWatch::Sweep(Time now) {
  absl::erase_if(jobs_, [&](const auto& entry) {
    return entry.second.times.empty() || entry.second.times.back() <= now - kWindow;
  });
  swept_at_ = std::max<size_t>(1024, 2 * jobs_.size());
}

int32_t RestartWatch::CountAt(const Recent& recent, Time now) {
  const auto first = std::upper_bound(recent.times.begin(), recent.times.end(), now - kWindow);
  const auto count = static_cast<int32_t>(recent.times.end() - first);
  return count > kOften ? count : 0;
}

int32_t RestartWatch::Often(JobId job, Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : CountAt(found->second, now);
}

int64_t RestartWatch::JobsOften(Time now) const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(jobs_.begin(), jobs_.end(),
                       [&](const auto& entry) { return CountAt(entry.second, now) > 0; });
}

void RenderConditions(const ClusterState& state, const Job& job, int32_t restarts,
                      v1::JobStatus* out) {
  if (const int32_t tasks = RestartedPiecemeal(job); tasks > 0) {
    AddCondition(v1::JobCondition::GANG_RESTARTED_PIECEMEAL, tasks,
                 absl::StrCat("all ", tasks,
                              " running tasks were restarted one by one since the gang started"),
                 out);
  }
  if (restarts > 0) {
    AddCondition(v1::JobCondition::RESTARTS_OFTEN, restarts,
                 absl::StrCat(restarts, " restarts in the last minute"), out);
  }
  if (const int32_t starts = RefusedAtHead(state, job); starts > 0) {
    AddCondition(v1::JobCondition::START_REFUSED, starts,
                 absl::StrCat("first in its queue, and its last ", starts, " starts were refused"),
                 out);
  }
}

std::array<int64_t, v1::JobCondition::Kind_ARRAYSIZE> CountConditions(ReadView& view,
                                                                      const RestartWatch& restarts,
                                                                      Time now) {
  std::array<int64_t, v1::JobCondition::Kind_ARRAYSIZE> counts{};
  counts[v1::JobCondition::RESTARTS_OFTEN] = restarts.JobsOften(now);
  JobId next{0};
  const auto look = [&](const ClusterState& state) {
    for (size_t row = 0; row < kMaxRowsPerStep; ++row) {
      const std::optional<JobId> id = state.jobs().NextFrom(next);
      if (!id.has_value()) return false;
      next = JobId{id->value + 1};
      const Job& job = state.jobs().At(*id);
      counts[v1::JobCondition::GANG_RESTARTED_PIECEMEAL] += RestartedPiecemeal(job) > 0 ? 1 : 0;
      counts[v1::JobCondition::START_REFUSED] += RefusedAtHead(state, job) > 0 ? 1 : 0;
    }
    return true;
  };
  while (view.Step(look)) {
  }
  return counts;
}

}  // namespace berth
