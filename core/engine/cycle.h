// What the stages of one cycle share: the state with the decisions so far, and the budget.
#ifndef BERTH_CORE_ENGINE_CYCLE_H_
#define BERTH_CORE_ENGINE_CYCLE_H_

#include <algorithm>
#include <cstdint>

#include "core/engine/engine_cache.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/engine/search/node_search.h"
#include "core/engine/search/reservations.h"
#include "core/engine/transaction.h"
#include "core/model/cluster_state.h"

namespace berth {

// Lives for one PlanCycle. Not thread-safe.
class Cycle {
 public:
  Cycle(ClusterState& state, const Policies& policies, Time now, uint64_t budget)
      : state_(state),
        policies_(policies),
        now_(now),
        budget_(std::max<uint64_t>(budget, 1)),
        transaction_(state, now),
        reservations_(state, transaction_, now),
        search_(state, policies, &reservations_, &transaction_.editor()) {}

  // Includes the effect of the decisions so far.
  const ClusterState& state() const { return state_; }
  const Policies& policies() const { return policies_; }
  Time now() const { return now_; }
  Transaction& transaction() { return transaction_; }
  // Reservations for blocked jobs, as decided so far.
  Reservations& reservations() { return reservations_; }
  // Shared, so that policies prepare each shape only once per cycle.
  NodeSearch& search() { return search_; }

  // What the queues are entitled to now. Placing, evicting with requeue and nominating do not
  // change it. The reference stays valid; its values change with the next call.
  const FairShares& shares() {
    return FreshShares(transaction_.editor(), state_, policies_.fair_share());
  }

  // Checked between jobs, never within one: a stage always finishes the job that it has begun. Only
  // counted work, no time, so that the same inputs stop at the same place everywhere.
  bool BudgetSpent() const { return counters_.work >= budget_; }
  void CountWork(uint64_t units) { counters_.work += units; }
  // Called by a stage that stops with work left because the budget is spent. Later stages then do
  // not run, because their decisions may depend on that work.
  void Cut() { cut_ = true; }
  bool cut() const { return cut_; }
  PlanCounters& counters() { return counters_; }
  // There will be something to do then even if nothing happens (Plan::wake_at).
  void WakeBy(Time at) { wake_by_ = std::min(wake_by_, at); }
  Time wake_by() const { return wake_by_; }

 private:
  ClusterState& state_;
  const Policies& policies_;
  const Time now_;
  const uint64_t budget_;
  PlanCounters counters_;
  bool cut_ = false;
  Time wake_by_ = absl::InfiniteFuture();
  Transaction transaction_;
  Reservations reservations_;
  NodeSearch search_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_CYCLE_H_
