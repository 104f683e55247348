#include "server/controllers/hang_rule.h"

#include <limits>
#include <vector>

#include "core/model/transitions.h"

namespace berth {
namespace {

// Tasks that report no steps come last: they say nothing about how far they have come.
int64_t Reached(const ToldProgress& told) {
  return told.step < 0 ? std::numeric_limits<int64_t>::max() : told.step;
}

bool HungNow(const Job& job, uint32_t task, ToldLookup told) {
  const ToldProgress* progress = told(task);
  return job.tasks[task].state == TaskState::kRunning && progress != nullptr && progress->hung;
}

bool OfGang(const Job& job, uint32_t task) {
  return !RunsAlone(job, task) && !job.groups[GroupOf(job, task)].coordinator;
}

// It has nothing to do any more, or not yet: its group waits for another one of the job.
bool Idle(const Job& job, uint32_t task) {
  const TaskState state = job.tasks[task].state;
  return state == TaskState::kSucceeded || (Waits(state) && !GroupOpen(job, GroupOf(job, task)));
}

// The member that has come least far, if all of them run and hang.
std::optional<uint32_t> HungGang(const Job& job, ToldLookup told) {
  std::optional<uint32_t> least;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (!OfGang(job, i) || Idle(job, i)) continue;
    if (!HungNow(job, i, told)) return std::nullopt;
    if (!least.has_value() || Reached(*told(i)) < Reached(*told(*least))) least = i;
  }
  return least;
}

std::optional<uint32_t> HungAlone(const Job& job, ToldLookup told) {
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (RunsAlone(job, i) && HungNow(job, i, told)) return i;
  }
  return std::nullopt;
}

// One of those that hang shows progress again. If the named one has ended, the lifecycle acts.
bool Moves(const Job& job, uint32_t named, ToldLookup told) {
  if (job.tasks[named].state != TaskState::kRunning) return false;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (!HangsWith(job, i) || job.groups[GroupOf(job, i)].coordinator) continue;
    const ToldProgress* progress = told(i);
    const bool runs = job.tasks[i].state == TaskState::kRunning;
    if (runs && progress != nullptr && !progress->hung) return true;
  }
  return false;
}

TaskHung EventFor(const Job& job, uint32_t task, ToldLookup told, bool over) {
  TaskHung event{.task = {job.id, task}, .attempt = job.tasks[task].attempt, .over = over};
  if (const ToldProgress* progress = told(task); progress != nullptr) {
    event.still = progress->still;
    event.step = progress->step;
  }
  return event;
}

}  // namespace

std::optional<TaskHung> JudgeHang(const Job& job, ToldLookup told) {
  if (job.watchdog == absl::InfiniteDuration() || job.status.state != JobState::kRunning) {
    return std::nullopt;
  }
  if (IsPaused(job.status)) return std::nullopt;  // what was told before says nothing
  if (Hangs(job)) {
    const uint32_t named = job.status.hang.task;
    if (!Moves(job, named, told)) return std::nullopt;
    return EventFor(job, named, told, /*over=*/true);
  }
  std::optional<uint32_t> hung = HungGang(job, told);
  if (!hung.has_value()) hung = HungAlone(job, told);
  if (!hung.has_value()) return std::nullopt;
  return EventFor(job, *hung, told, /*over=*/false);
}

}  // namespace berth
