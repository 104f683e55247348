// allocate: gives waiting jobs free places.
//
// PendingIndex holds what waits as classes of equal demands, the ready ones ordered by their first
// job. So the next job to serve is the head of the first class; if it does not fit, none of its
// class does, and the whole class is set aside with the reason. A gang is placed whole or not at
// all; jobs that have their minimum then take one more task at a time.
//
//   ready: A{j1 j4} B{j2} C{j3}     j1 fits -> A{j4} moves behind;  j2 does not -> B blocked;  j3
//   ...
//
// Cost: decisions + classes not known to be blocked, whatever the number of jobs that wait.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/engine/cycle.h"
#include "core/engine/node_search.h"
#include "core/engine/verdict.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

class Allocation {
 public:
  explicit Allocation(Cycle& cycle);

  // Serves jobs in order until none is left that may fit, or the budget is spent. At least one: so
  // that a cycle whose budget went to the lifecycle stage still moves on.
  void Run();

 private:
  struct Head {
    ClassId id;
    JobId job;
  };
  std::optional<Head> Next() const;
  bool Before(const Job& a, const Job& b) const;
  void Serve(const Head& head);

  // Places what the job needs; else says why not, with nothing changed.
  std::optional<BlockedVerdict> Try(const Job& job);
  std::optional<BlockedVerdict> TryGang(const Job& job, const JobNeeds& needs);
  std::optional<BlockedVerdict> TryOne(const Job& job, const JobNeeds& needs);
  // The first `count` waiting tasks of the group; how many found a place.
  int32_t PlaceTasks(const Job& job, uint32_t group, int32_t count);
  void Bind(const Job& job);

  Cycle& cycle_;
  const ClusterState& state_;
  Transaction& transaction_;
  NodeSearch search_;
  std::vector<JobCompare> orders_;
  // Growth comes back to the same group task by task: none before this one, in its group, waits.
  TaskKey first_waiting_;
};

Allocation::Allocation(Cycle& cycle)
    : cycle_(cycle),
      state_(cycle.state()),
      transaction_(cycle.transaction()),
      search_(cycle.state(), cycle.policies()) {
  for (const auto& order : cycle.policies().job_orders()) {
    JobCompare compare = order->Prepare(state_, cycle.now());
    if (compare == nullptr) break;  // the index order is total
    orders_.push_back(std::move(compare));
  }
}

void Allocation::Run() {
  for (std::optional<Head> head = Next(); head.has_value(); head = Next()) {
    Serve(*head);
    if (cycle_.SpentUp() && Next().has_value()) return cycle_.Cut();
  }
}

bool Allocation::Before(const Job& a, const Job& b) const {
  for (const JobCompare& compare : orders_) {
    if (const int order = compare(a, b); order != 0) return order < 0;
  }
  return OrderKey{a.priority, a.id} < OrderKey{b.priority, b.id};
}

// Among equals, gangs below their minimum go before jobs that only grow.
std::optional<Allocation::Head> Allocation::Next() const {
  const auto& ready = state_.pending().ready();
  if (ready.empty()) return std::nullopt;
  const auto first = ready.begin();
  auto best = first;
  if (orders_.empty()) {
    for (auto it = first; it != ready.end() && it->first.priority == first->first.priority; ++it) {
      best = it;
      if (state_.pending().Class(it->second).demand.gang) break;
      best = first;
    }
  } else {
    for (auto it = std::next(first); it != ready.end(); ++it) {
      const Job& job = state_.jobs().At(it->first.job);
      if (Before(job, state_.jobs().At(best->first.job))) best = it;
    }
  }
  return Head{best->second, best->first.job};
}

void Allocation::Serve(const Head& head) {
  ++cycle_.counters().jobs_considered;
  cycle_.CountWork(1);
  std::optional<BlockedVerdict> verdict = Try(state_.jobs().At(head.job));
  if (verdict.has_value()) transaction_.editor().Block(head.id, *std::move(verdict));
}

std::optional<BlockedVerdict> Allocation::Try(const Job& job) {
  if (auto verdict = QueueVerdict(state_, job); verdict.has_value()) return verdict;
  const JobNeeds needs = NeedsOf(job);
  return needs.gang ? TryGang(job, needs) : TryOne(job, needs);
}

std::optional<BlockedVerdict> Allocation::TryGang(const Job& job, const JobNeeds& needs) {
  const Resources request = RequestOf(state_, job, needs);
  if (!state_.WithinLimits(job.queue, request)) return LimitVerdict(state_, job.queue, request);
  const Transaction::Mark mark = transaction_.mark();
  int32_t placed = 0;
  for (const GroupNeed& need : needs.groups) {
    const int32_t here = PlaceTasks(job, need.group, need.count);
    placed += here;
    if (here == need.count) continue;
    BlockedVerdict verdict =
        ShortageVerdict(state_, search_, job, needs, placed, &cycle_.counters().work);
    transaction_.RollbackTo(mark);
    return verdict;
  }
  Bind(job);
  return std::nullopt;
}

std::optional<BlockedVerdict> Allocation::TryOne(const Job& job, const JobNeeds& needs) {
  std::optional<BlockedVerdict> first;
  for (const GroupNeed& need : needs.groups) {
    const JobNeeds one{.gang = false, .groups = {need}};
    const Resources request = RequestOf(state_, job, one);
    std::optional<BlockedVerdict> verdict;
    if (!state_.WithinLimits(job.queue, request)) {
      verdict = LimitVerdict(state_, job.queue, request);
    } else if (PlaceTasks(job, need.group, 1) == 1) {
      Bind(job);
      return std::nullopt;
    } else {
      verdict = ShortageVerdict(state_, search_, job, one, 0, &cycle_.counters().work);
    }
    if (!first.has_value()) first = std::move(verdict);
  }
  return first;
}

int32_t Allocation::PlaceTasks(const Job& job, uint32_t group, int32_t count) {
  const Group& spec = job.groups[group];
  const uint32_t end = spec.first_task + static_cast<uint32_t>(spec.replicas);
  uint32_t task = spec.first_task;
  if (first_waiting_.job == job.id && first_waiting_.task < end) {
    task = std::max(task, first_waiting_.task);
  }
  int32_t placed = 0;
  for (; task < end && placed < count; ++task) {
    if (!Waits(job.tasks[task].state)) continue;
    const std::optional<Found> found = search_.Best(spec.shape, &cycle_.counters().work);
    if (!found.has_value()) break;
    transaction_.Place(job.id, {task, found->node, found->devices});
    ++placed;
  }
  return placed;
}

void Allocation::Bind(const Job& job) {
  const size_t tasks = transaction_.placed().size();
  first_waiting_ = {job.id, transaction_.placed().back().task + 1};
  cycle_.CountWork(tasks);
  cycle_.counters().tasks_placed += tasks;
  transaction_.BindPlaced(job.id, /*gang=*/job.status.state == JobState::kPending);
  transaction_.Sync();
}

class AllocateAction final : public Action {
 public:
  absl::string_view name() const override { return "allocate"; }
  void Run(Cycle& cycle) const override { Allocation(cycle).Run(); }
};

}  // namespace

std::unique_ptr<Action> MakeAllocate() { return std::make_unique<AllocateAction>(); }

}  // namespace berth
