// Fair shares by literal use of the rules: from the jobs themselves, one resource at a time,
// in rounds, and one unit at a time at the end. Header only.
#ifndef BERTH_TESTS_PROPERTY_NAIVE_SHARES_H_
#define BERTH_TESTS_PROPERTY_NAIVE_SHARES_H_

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/engine/shares/fair_share.h"

namespace berth::testing {

struct Taker {
  QueueId queue;
  absl::int128 cap = 0, weight = 0, got = 0;
  int32_t priority = 0;  // for the remainder
};

inline absl::int128 RoundsOf(absl::int128 amount, std::vector<Taker>& takers, int64_t unit) {
  std::set<size_t> active;
  for (size_t i = 0; i < takers.size(); ++i) {
    if (takers[i].cap > 0 && takers[i].weight > 0) active.insert(i);
  }
  absl::int128 rest = amount;
  while (rest > 0 && !active.empty()) {
    absl::int128 weights = 0;
    for (size_t i : active) weights += takers[i].weight;
    std::vector<size_t> full;
    for (size_t i : active) {
      if (rest * takers[i].weight >= takers[i].cap * weights) full.push_back(i);
    }
    if (full.empty()) {  // no taker is capped: round down, then unit by unit
      std::map<size_t, absl::int128> fraction;
      absl::int128 left = rest;
      std::map<size_t, absl::int128> room;
      for (size_t i : active) {
        const absl::int128 units = rest * takers[i].weight / (weights * unit);
        takers[i].got += units * unit;
        left -= units * unit;
        fraction[i] = rest * takers[i].weight - units * unit * weights;
        room[i] = takers[i].cap - units * unit;
      }
      std::vector<size_t> order;
      while (!fraction.empty()) {
        size_t most = fraction.begin()->first;
        for (const auto& [i, f] : fraction) {
          const int32_t own = takers[i].priority, best = takers[most].priority;
          if (own > best || (own == best && f > fraction[most])) most = i;
        }
        order.push_back(most);
        fraction.erase(most);
      }
      for (size_t at = 0; left > 0; at = (at + 1) % order.size()) {
        const size_t i = order[at];
        const absl::int128 more = std::min({absl::int128(unit), left, room[i]});
        takers[i].got += more;
        room[i] -= more;
        left -= more;
      }
      return amount;
    }
    for (size_t i : full) {
      takers[i].got += takers[i].cap;
      rest -= takers[i].cap;
      active.erase(i);
    }
  }
  return amount - rest;
}

class NaiveShares {
 public:
  NaiveShares(const ClusterState& state, const FairShareParameters& parameters)
      : state_(state), parameters_(parameters) {
    state.jobs().ForEach([&](JobId, const Job& job) { Count(job); });
    FairShares::OfQueue& root = Start(kRootQueue);
    root.fair_share = root.deserved = root.divisible = state.capacity();
    DivideBelow(kRootQueue);
  }
  const FairShares::OfQueue& At(QueueId id) { return result_[id]; }

 private:
  // Pending tasks are demand of all queues above, unless the job is held, one of these queues is
  // closed, or the job was found never to fit.
  void Count(const Job& job) {
    const JobState now = job.status.state;
    const bool held = now == JobState::kHeld || now == JobState::kSuspended;
    const PendingClass* of = state_.pending().FindClass(job.pending_class);
    if (Ended(now) || held || (of != nullptr && of->never)) return;
    Resources waits;
    for (uint32_t t = 0; t < job.tasks.size(); ++t) {
      if (job.tasks[t].state != TaskState::kPending) continue;
      waits += state_.interner().Shape(job.groups[GroupOf(job, t)].shape).resources;
    }
    std::vector<QueueId> path = {job.queue};
    while (path.back() != kRootQueue) {
      path.push_back(state_.queues().At(path.back()).spec.parent);
    }
    for (QueueId id : path) {
      if (!state_.queues().At(id).open) return;
    }
    for (QueueId id : path) wanted_[id] += waits;
  }
  FairShares::OfQueue& Start(QueueId id) {
    const Queue& queue = state_.queues().At(id);
    FairShares::OfQueue& of = result_[id];
    of.demand = queue.allocated + wanted_[id];
    for (size_t k = 0; k < kMaxResourceKinds; ++k) of.guarantee.amount[k] = Guarantee(id, k);
    return of;
  }
  int64_t Guarantee(QueueId id, size_t k) const {
    int64_t below = 0;
    for (QueueId child : state_.queues().At(id).children) below += Guarantee(child, k);
    return std::max(below, state_.queues().At(id).guarantee.amount[k]);
  }
  int64_t Wanted(QueueId id, size_t k) {
    return std::min(result_[id].demand.amount[k], state_.queues().At(id).limit.amount[k]);
  }

  // Divides `amount`: guarantees first, then up to `want` by deserved beyond the guarantee. Queues
  // with a finite deserved amount come before those with an unlimited one, which are treated
  // equally. In the order of `children`.
  template <class Want>
  std::map<QueueId, absl::int128> Entitle(const std::vector<QueueId>& children, size_t k,
                                          int64_t amount, Want want) {
    std::vector<Taker> floors, numbers, boundless;
    for (QueueId id : children) {
      const Queue& queue = state_.queues().At(id);
      const int64_t floor = std::min(result_[id].guarantee.amount[k], queue.limit.amount[k]);
      const int64_t deserved = std::min(queue.deserved.amount[k], queue.limit.amount[k]);
      const int32_t priority = queue.spec.priority;
      floors.push_back({id, floor, floor, 0, priority});
      if (deserved < kMaxAmount) {
        numbers.push_back(
            {id, std::min(deserved, want(id)) - floor, deserved - floor, 0, priority});
      } else {
        boundless.push_back({id, std::min(amount, want(id)) - floor, 1, 0, priority});
      }
    }
    const int64_t unit = UnitOf(ResourceKind{static_cast<uint8_t>(k)});
    std::map<QueueId, absl::int128> got;
    absl::int128 left = amount;
    for (std::vector<Taker>* takers : {&floors, &numbers, &boundless}) {
      left -= RoundsOf(left, *takers, unit);
      for (const Taker& taker : *takers) got[taker.queue] += taker.got;
    }
    return got;
  }

  absl::int128 Weight(QueueId id, const std::vector<QueueId>& siblings, size_t k, int64_t amount) {
    const Queue& queue = state_.queues().At(id);
    if (parameters_.half_life <= absl::ZeroDuration()) return queue.spec.weight;
    int64_t weights = 0;
    for (QueueId sibling : siblings) weights += state_.queues().At(sibling).spec.weight;
    int64_t usage = 0;
    for (const NamedAmount& one : queue.usage) {
      if (one.name == state_.interner().KindName(ResourceKind{static_cast<uint8_t>(k)})) {
        usage = one.amount;
      }
    }
    const absl::int128 one = absl::int128(1) << 32;
    const absl::int128 share = queue.spec.weight * one / weights;
    const absl::int128 used = usage * one / (absl::int128(amount) * 1024);
    return std::max<absl::int128>(share + parameters_.usage_weight * (share - used), 1);
  }

  void DivideKind(const std::vector<QueueId>& children, size_t k, const FairShares::OfQueue& own) {
    const int64_t there = own.divisible.amount[k], amount = own.fair_share.amount[k];
    auto deserved = Entitle(children, k, there, [](QueueId) { return INT64_MAX; });
    auto got = Entitle(children, k, amount, [&](QueueId id) { return Wanted(id, k); });
    absl::int128 rest = amount;
    std::set<int32_t> priorities;
    for (QueueId id : children) {
      rest -= got[id];
      priorities.insert(state_.queues().At(id).spec.priority);
    }
    for (auto priority = priorities.rbegin(); priority != priorities.rend(); ++priority) {
      std::vector<Taker> takers;
      for (QueueId id : children) {
        const QueueSpec& spec = state_.queues().At(id).spec;
        if (spec.priority != *priority || spec.weight == 0 || amount == 0) continue;
        takers.push_back({id, Wanted(id, k) - got[id], Weight(id, children, k, amount), 0});
      }
      rest -= RoundsOf(rest, takers, UnitOf(ResourceKind{static_cast<uint8_t>(k)}));
      for (const Taker& taker : takers) got[taker.queue] += taker.got;
    }
    for (QueueId id : children) {
      const Queue& queue = state_.queues().At(id);
      FairShares::OfQueue& of = result_[id];
      of.fair_share.amount[k] = static_cast<int64_t>(got[id]);
      of.deserved.amount[k] = static_cast<int64_t>(deserved[id]);
      const int64_t said = std::max(queue.deserved.amount[k], of.guarantee.amount[k]);
      const bool boundless =
          queue.deserved.amount[k] >= kMaxAmount && queue.limit.amount[k] >= kMaxAmount;
      if (!boundless && deserved[id] < std::min(said, queue.limit.amount[k])) {
        of.deserved_scaled = true;
      }
      const bool names = queue.deserved_bound.amount[k] != INT64_MAX;
      of.divisible.amount[k] =
          names ? of.deserved.amount[k] : std::min(queue.limit.amount[k], there);
    }
  }

  void DivideBelow(QueueId parent) {
    const std::vector<QueueId>& children = state_.queues().At(parent).children;
    for (QueueId id : children) Start(id);
    for (size_t k = 0; k < state_.interner().kind_count(); ++k) {
      DivideKind(children, k, result_[parent]);
    }
    for (QueueId id : children) DivideBelow(id);
  }

  const ClusterState& state_;
  const FairShareParameters parameters_;
  std::map<QueueId, Resources> wanted_;
  std::map<QueueId, FairShares::OfQueue> result_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_PROPERTY_NAIVE_SHARES_H_
