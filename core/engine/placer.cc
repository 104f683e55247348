#include "core/engine/placer.h"

#include <algorithm>
#include <utility>

namespace berth {

int32_t TasksIn(const JobNeeds& needs) {
  int32_t tasks = 0;
  for (const GroupNeed& need : needs.groups) tasks += need.count;
  return tasks;
}

Placer::Placer(Cycle& cycle)
    : cycle_(cycle), state_(cycle.state()), transaction_(cycle.transaction()) {}

std::optional<BlockedVerdict> Placer::Gates(const Job& job, const JobNeeds& needs) const {
  if (auto verdict = QueueVerdict(state_, job); verdict.has_value()) return verdict;
  const Resources request = RequestOf(state_, job, needs);
  if (!state_.WithinLimits(job.queue, request)) return LimitVerdict(state_, job.queue, request);
  if (auto verdict = NonpreemptibleVerdict(state_, job, request); verdict.has_value()) {
    return verdict;
  }
  return GuaranteeVerdict(state_, job.queue, request);
}

std::optional<BlockedVerdict> Placer::Serve(const Job& job) {
  const JobNeeds needs = NeedsOf(job);
  return needs.gang ? ServeGang(job, needs) : ServeOne(job, needs);
}

std::optional<BlockedVerdict> Placer::ServeGang(const Job& job, const JobNeeds& needs) {
  if (auto verdict = Gates(job, needs); verdict.has_value()) return verdict;
  const Transaction::Mark mark = transaction_.mark();
  const int32_t placed = PlaceAll(job, needs);
  if (placed == TasksIn(needs)) {
    Bind(job);
    return std::nullopt;
  }
  BlockedVerdict verdict =
      ShortageVerdict(state_, cycle_.search(), job, needs, placed, &cycle_.counters().work);
  transaction_.RollbackTo(mark);
  return verdict;
}

std::optional<BlockedVerdict> Placer::ServeOne(const Job& job, const JobNeeds& needs) {
  std::optional<BlockedVerdict> first;
  for (const GroupNeed& need : needs.groups) {
    const JobNeeds one{.gang = false, .groups = {need}};
    std::optional<BlockedVerdict> verdict = Gates(job, one);
    if (!verdict.has_value()) {
      if (PlaceTasks(job, need.group, 1) == 1) {
        Bind(job);
        return std::nullopt;
      }
      verdict = ShortageVerdict(state_, cycle_.search(), job, one, 0, &cycle_.counters().work);
    }
    if (!first.has_value()) first = std::move(verdict);
  }
  return first;
}

int32_t Placer::PlaceAll(const Job& job, const JobNeeds& needs) {
  int32_t placed = 0;
  for (const GroupNeed& need : needs.groups) {
    const int32_t here = PlaceTasks(job, need.group, need.count);
    placed += here;
    if (here < need.count) break;
  }
  return placed;
}

int32_t Placer::PlaceTasks(const Job& job, uint32_t group, int32_t count) {
  const Group& spec = job.groups[group];
  const uint32_t end = spec.first_task + static_cast<uint32_t>(spec.replicas);
  uint32_t task = spec.first_task;
  if (first_waiting_.job == job.id && first_waiting_.task < end) {
    task = std::max(task, first_waiting_.task);
  }
  int32_t placed = 0;
  for (; task < end && placed < count; ++task) {
    if (job.tasks[task].state != TaskState::kPending) continue;
    const std::optional<Found> found = cycle_.search().Best(spec.shape, &cycle_.counters().work);
    if (!found.has_value()) break;
    transaction_.Place(job.id, {task, found->node, found->devices});
    ++placed;
  }
  return placed;
}

void Placer::Bind(const Job& job) {
  const size_t tasks = transaction_.placed().size();
  first_waiting_ = {job.id, transaction_.placed().back().task + 1};
  cycle_.CountWork(tasks);
  cycle_.counters().tasks_placed += tasks;
  transaction_.BindPlaced(job.id, /*gang=*/job.status.state == JobState::kPending);
  transaction_.Sync();
}

}  // namespace berth
