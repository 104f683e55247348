// UsageFold: events, and the time.
#include "core/history/usage_fold.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/history/usage_fold_internal.h"
#include "core/model/release.h"
#include "core/model/transitions.h"

namespace berth {

using history_internal::Unfit;

UsageFold::UsageFold(UsageOptions options) : options_(std::move(options)), keys_(options_.keys) {
  queues_.Insert(kRootQueue, QueueUsage{.path = "", .key = keys_.AcquireQueue("")});
}

void UsageFold::Begin(Time now) {
  now_ms_ = MsOf(now);
  minutes_.Begin(now_ms_);
  hours_.Begin(now_ms_);
  capacity_minutes_.Begin(now_ms_);
  capacity_hours_.Begin(now_ms_);
  CountSplits();
  const auto release = [this](const UsageRowId& id) { keys_.Release(id.first); };
  minutes_.Restart(now_ms_, release);
  hours_.Restart(now_ms_, release);
  capacity_minutes_.Restart(now_ms_, [](ModelId) {});
  capacity_hours_.Restart(now_ms_, [](ModelId) {});
  BeginJobs();
  checkpoints_.clear();
  ended_.clear();
  begun_ = true;
}

static_assert(std::variant_size_v<AnyFact> == 39, "what does the new event mean for usage?");
absl::Status UsageFold::Apply(const Event& event) {
  PassTime(event.time, SIZE_MAX);
  absl::Status status = std::visit([this](const auto& body) { return On(body); }, event.body);
  CountSplits();
  return status;
}

bool UsageFold::PassTime(Time now, size_t most) {
  const int64_t target = std::max(now_ms_, MsOf(now));
  while (now_ms_ < target) {
    if (changes() >= most) return false;
    const int64_t end = minutes_.end_ms();
    if (target < end) {
      now_ms_ = target;
      return true;
    }
    // After a long time without events the first of its minutes are too old to be of use.
    const int64_t oldest =
        PeriodOf(target - absl::ToInt64Milliseconds(options_.minutes), kMsPerMinute);
    now_ms_ = std::clamp(oldest, end, std::max(end, hours_.end_ms()));
    CloseMinute(now_ms_, /*yield=*/end > oldest);
    if (now_ms_ == hours_.end_ms()) CloseHour();
  }
  return true;
}

// ---- Events

absl::Status UsageFold::On(const TasksBound& event) {
  JobUsage* job = jobs_.Find(event.job);
  if (job == nullptr) return Unfit("no job ", event.job.value);
  for (const Placement& placement : event.placements) {
    const TaskKey key{event.job, placement.task};
    const PlacedTask* before = FindTask(key);
    Task bound = BoundTask(before == nullptr ? Task{} : before->task, placement, now());
    bound.epoch = event.epoch;
    if (absl::Status status = SetTask(key, bound); !status.ok()) return status;
  }
  job->broken_by = Loss::kNone;
  changes_.jobs.insert(event.job);
  if (!event.gang) return absl::OkStatus();
  ++job->life.starts;
  SetState(*job, JobState::kBinding);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const TasksStarted& event) {
  return ChangeTasks(event.job, event.tasks,
                     [&](const Task& task) { return StartedTask(task, now()); });
}

absl::Status UsageFold::On(const TasksReleased& event) {
  JobUsage* job = jobs_.Find(event.job);
  if (job == nullptr) return Unfit("no job ", event.job.value);
  const Loss loss = history_internal::LossBy(event.reason, job->broken_by);
  for (const uint32_t index : event.tasks) {
    PlacedTask* placed = MutableTask({event.job, index});
    if (placed == nullptr)
      return Unfit("task ", index, " of job ", event.job.value, " has no place");
    const NodeUsage* node = nodes_.Find(placed->task.node);
    if (node == nullptr) return Unfit("no node ", placed->task.node.value);
    const bool unreachable = node->status.state == NodeState::kLost;
    placed->stopped_by = loss;
    const Task after = AfterRelease(placed->task, event, index, unreachable, now());
    if (absl::Status status = SetTask({event.job, index}, after, loss); !status.ok()) return status;
  }
  if (!IsEviction(event.reason)) return absl::OkStatus();
  ++job->life.evictions;
  changes_.jobs.insert(event.job);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const TasksRequeued& event) {
  for (const uint32_t index : event.tasks) {
    Task pending;
    pending.since = now();
    if (absl::Status status = SetTask({event.job, index}, pending); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status UsageFold::On(const TasksNominated& event) {
  for (const Placement& place : event.placements) {
    const TaskKey key{event.job, place.task};
    const PlacedTask* before = FindTask(key);
    const Task task = before == nullptr ? Task{} : UnnominatedTask(before->task, now());
    absl::Status status = SetTask(key, NominatedTask(task, place, now()));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status UsageFold::On(const TasksUnnominated& event) {
  return ChangeTasks(event.job, event.tasks,
                     [&](const Task& task) { return UnnominatedTask(task, now()); });
}

absl::Status UsageFold::On(const TasksPaused& event) {
  return ChangeTasks(event.job, event.tasks, PausingTask);
}

absl::Status UsageFold::On(const TasksResumed& event) {
  return ChangeTasks(event.job, event.tasks, event.waits ? ResumingTask : ResumedTask);
}

absl::Status UsageFold::On(const TaskReported& event) {
  JobUsage* job = jobs_.Find(event.task.job);
  if (job == nullptr) return Unfit("no job ", event.task.job.value);
  const PlacedTask* placed = FindTask(event.task);
  if (placed == nullptr) return Unfit("a report of a task without a place");
  const Task& before = placed->task;
  // Only of a task that is told to stop does it matter whether exit code 0 is a success.
  const bool saved = job->saves_with_zero && Releasing(before) && event.exit_code == 0;
  const Task after = ReportedTask(before, event, saved, now());
  const bool failed = event.state == ReportState::kExited && event.cause == ExitCause::kItself &&
                      (event.exit_code != 0 || (event.exit_signal != 0 && !Releasing(before)));
  if (failed) {
    job->life.exit_code = event.exit_code;
    job->life.exit_signal = Releasing(before) ? 0 : event.exit_signal;
    changes_.jobs.insert(event.task.job);
  }
  return SetTask(event.task, after, LossAtEnd(*placed, after));
}

absl::Status UsageFold::On(const CheckpointRecorded& event) {
  JobUsage* job = jobs_.Find(event.task.job);
  if (job == nullptr) return Unfit("no job ", event.task.job.value);
  if (FindTask(event.task) == nullptr) return Unfit("a checkpoint of a task without a place");
  const auto runs_alone = [&](uint32_t index) {
    const Group& group = job->shared->groups[GroupOf(job->shared->groups, index)];
    return MembershipOf(group) == GangMembership::kIndependent;
  };
  const bool of_gang = !runs_alone(event.task.task);
  for (auto& [index, placed] : job->places->tasks) {
    const bool saves = index == event.task.task || (of_gang && !runs_alone(index));
    if (!saves || placed.task.start == absl::InfinitePast()) continue;
    placed.work_from_ms = placed.frozen_since_ms = now_ms_;
    placed.frozen_ms = 0;
    changes_.tasks.insert({event.task.job, index});
  }
  return absl::OkStatus();
}

}  // namespace berth
