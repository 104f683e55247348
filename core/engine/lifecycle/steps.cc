#include "core/engine/lifecycle/steps.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// Members that have succeeded count as present.
int32_t PresentMembers(const GroupTally& tally) {
  return tally.Members() + tally.In(TaskState::kSucceeded);
}

bool RunsAgain(const Job& job, uint32_t task, bool rerun_all) {
  if (rerun_all || job.tasks[task].state != TaskState::kSucceeded) return true;
  const uint32_t group = GroupOf(job, task);
  const Group& spec = job.groups[group];
  const bool whole = job.tallies[group].In(TaskState::kSucceeded) == spec.replicas;
  return !whole && spec.min_available == spec.replicas;
}

}  // namespace

std::string TaskLabel(const Job& job, uint32_t task) {
  const Group& group = job.groups[GroupOf(job, task)];
  return absl::StrCat(group.name, "-", task - group.first_task);
}

std::string OnNode(const Look& look, uint32_t task) {
  const Node* node = look.state.nodes().Find(look.job.tasks[task].node);
  return node == nullptr ? "" : absl::StrCat(" on ", node->spec.name);
}

TaskList TasksWhere(const Job& job, absl::FunctionRef<bool(const Task&)> test) {
  TaskList tasks;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (test(job.tasks[i])) tasks.push_back(i);
  }
  return tasks;
}

bool Holds(const Task& task) { return Occupies(task.state) && !Releasing(task); }

bool KeepsMinimum(const Job& job, const TaskList& leaving) {
  absl::InlinedVector<int32_t, 8> present;
  for (const GroupTally& tally : job.tallies) present.push_back(PresentMembers(tally));
  for (uint32_t task : leaving) {
    const TaskState state = job.tasks[task].state;
    if (Occupies(state) && state != TaskState::kReleasing) --present[GroupOf(job, task)];
  }
  int64_t sum = 0;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (IsSpare(job.groups[g])) continue;
    const bool begun = GroupBegun(job, g);
    if (begun && present[g] < job.groups[g].min_available) return false;
    sum += begun ? present[g] : std::max(present[g], job.groups[g].min_available);
  }
  return sum >= job.min_available;
}

Step Conclude(const Look& look, JobState outcome, const std::string& message) {
  const bool occupied = look.job.occupying > 0;
  Step step;
  DropPlaces(look, &step);
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    status.state = occupied ? JobState::kCompleting : outcome;
    status.outcome = outcome;
    status.message = message;
    status.delayed.clear();
    status.hang = {};
    status.hold_until = absl::InfinitePast();
    if (!occupied) status.end = look.now;
  }));
  return step;
}

void Requeue(const Look& look, const TaskList& tasks, ReleaseReason reason, Step* step) {
  TaskList ended, held;
  for (uint32_t task : tasks) {
    const Task& value = look.job.tasks[task];
    if (Ended(value.state)) ended.push_back(task);
    if (Holds(value)) held.push_back(task);
  }
  if (!held.empty()) {
    step->push_back(TasksReleased{
        .job = look.job.id, .tasks = std::move(held), .requeue = true, .reason = reason});
  }
  if (!ended.empty()) {
    step->push_back(TasksRequeued{.job = look.job.id, .tasks = std::move(ended)});
  }
}

Step RestartJob(const Look& look, ReleaseReason reason, const std::string& message, Time hold_until,
                int32_t retries, bool rerun_all) {
  TaskList again;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    if (RunsAgain(look.job, i, rerun_all)) again.push_back(i);
  }
  Step step;
  DropPlaces(look, &step);
  Requeue(look, again, reason, &step);
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    const bool ran = status.state == JobState::kRunning && status.start < look.now;
    if (ran) status.attained += RunTime(status, look.now);
    status.pause = {.wanted = status.pause.wanted};
    status.state = JobState::kRestarting;
    status.hold_until = hold_until;
    status.retries = retries;
    status.message = message;
    status.delayed.clear();
    status.incident = absl::InfinitePast();
    status.rung = 0;
    status.places_until = absl::InfinitePast();
  }));
  return step;
}

GroupTally WorkersOf(const Job& job) {
  GroupTally sum;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    if (!HasRanks(job.groups[g])) continue;
    for (size_t state = 0; state < kTaskStates; ++state) {
      sum.count[state] += job.tallies[g].count[state];
    }
  }
  return sum;
}

TaskList SucceededToRerun(const Job& job) {
  TaskList again;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const bool succeeded = job.tasks[i].state == TaskState::kSucceeded;
    if (succeeded && RunsAgain(job, i, /*rerun_all=*/false)) again.push_back(i);
  }
  return again;
}

Step Displace(const Look& look, const TaskList& tasks, ReleaseReason reason,
              const std::string& message) {
  if (!Replaceable(look.job, tasks)) {
    Step restart = RestartJob(look, reason, message, absl::InfinitePast(), look.job.status.retries,
                              /*rerun_all=*/false);
    KeepPlaces(look, &restart);
    return restart;
  }
  Step step;
  Requeue(look, tasks, reason, &step);
  return step;
}

}  // namespace berth
