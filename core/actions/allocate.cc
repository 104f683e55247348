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
#include "core/engine/placer.h"
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

  Cycle& cycle_;
  const ClusterState& state_;
  Placer placer_;
  std::vector<JobCompare> orders_;
};

Allocation::Allocation(Cycle& cycle) : cycle_(cycle), state_(cycle.state()), placer_(cycle) {
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
  return KeyOf(a) < KeyOf(b);
}

// Among equals, gangs below their minimum go before jobs that only grow.
std::optional<Allocation::Head> Allocation::Next() const {
  std::optional<Head> best;
  bool best_gang = false;
  for (const auto& [queue, ready] : state_.pending().ready()) {
    for (const auto& [key, id] : ready) {
      const bool gang = state_.pending().Class(id).demand.gang;
      const Job& job = state_.jobs().At(key.job);
      if (best.has_value()) {
        const Job& other = state_.jobs().At(best->job);
        if (orders_.empty() && job.priority < other.priority) break;
        const bool sooner = orders_.empty() && job.priority == other.priority && gang != best_gang;
        if (sooner ? !gang : !Before(job, other)) continue;
      }
      best = Head{id, key.job};
      best_gang = gang;
    }
  }
  return best;
}

void Allocation::Serve(const Head& head) {
  ++cycle_.counters().jobs_considered;
  cycle_.CountWork(1);
  std::optional<BlockedVerdict> verdict = placer_.Serve(state_.jobs().At(head.job));
  if (verdict.has_value()) {
    cycle_.transaction().editor().Block(head.id, *std::move(verdict));
  }
}

class AllocateAction final : public Action {
 public:
  absl::string_view name() const override { return "allocate"; }
  void Run(Cycle& cycle) const override { Allocation(cycle).Run(); }
};

}  // namespace

std::unique_ptr<Action> MakeAllocate() { return std::make_unique<AllocateAction>(); }

}  // namespace berth
