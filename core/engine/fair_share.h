// FairShares: what each queue is entitled to now.
//
// Each resource on its own, in its integer unit, top down: siblings divide the amount A that their
// parent got (the root: the capacity of the ready nodes, cordoned ones included, as they come
// back).
//   1. Each gets min(deserved, demand, limit), but at least its guarantee, where demand is what the
//      subtree holds and waits for (OfQueue::demand). If that is more than A: guarantees first, and
//      what is left of A in proportion to what each deserves beyond its guarantee. Who deserves
//      without bound (kMaxAmount) comes after those who deserve a number: what these leave is
//      divided in equal parts.
//   2. What is left goes to those with unmet demand: highest priority first, in proportion to
//      weight among equals, up to demand and limit.
// "In proportion" fills (Fill): who would get more than it can take gets that, and the rest is
// divided anew among the others; at last rounded down, the remainder one unit each by queue
// priority, then largest fraction, then older queue. (Step 2 divides one priority at a time.)
//
// Example: A = 10 GPUs; a: deserved 4, demand 9; b: deserved 4, demand 1; c: demand 9. Step 1 gives
// a 4, b 1, c 0; the 5 left are split 2.5 : 2.5, so a 2, c 2 and the odd one to a, which is older:
// 7, 1, 2.
//
// The past. With half_life set, the weight w of step 2 is replaced by
//     max(0, w' + usage_weight * (w' - u)),   w' = w / sum of siblings' w,   u = usage / A,
// in 1/2^32, where usage is what the queue held on decayed average (Queue::usage): the time-based
// fair share of NVIDIA's KAI-Scheduler. It is at least 1/2^32 for a queue with any weight, so that
// nothing is left over for lack of a queue with merit.
//
// `deserved` as shown and as reclaim and order see it: what siblings deserve may add up to more
// than there is for them (capacity; or what their parent deserves, where it says; or its limit).
// Then all are scaled down, guarantees kept, so that the sum fits, and deserved_scaled is set, for
// a warning. Who deserves without bound was promised no number: that is no scaling. Demand has no
// part in this.
#ifndef BERTH_CORE_ENGINE_FAIR_SHARE_H_
#define BERTH_CORE_ENGINE_FAIR_SHARE_H_

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/id_map.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

// One of those who divide an amount.
struct Claim {
  int64_t cap = 0;       // takes at most this; <= 0: nothing
  int64_t weight = 0;    // <= 0: nothing
  int64_t got = 0;       // is increased
  int32_t priority = 0;  // of the remainder: higher first
};
// Gives out at most `amount` to the claims, older first, in proportion to weight as said above.
// Returns what was given: less than `amount` only if every claim with weight has its cap. Weights
// add up to less than 2^60. Parts are whole units but for caps, and the last part, that are not.
// O(n log n).
int64_t Fill(int64_t amount, std::vector<Claim>& claims, int64_t unit = 1);

class FairShares {
 public:
  struct OfQueue {
    Resources demand;  // allocated, and what waits and could be placed some time: of jobs neither
                       // on hold, nor in closed queues, nor such as can never fit
    Resources fair_share;
    Resources guarantee;  // its own, or the sum of those below where that is more
    Resources deserved;   // scaled if need be; at least the guarantee
    bool deserved_scaled = false;
    Resources divisible;  // what the deserved of its children is measured by
    bool operator==(const OfQueue&) const = default;
  };

  // Divides anew for parents some of whose children changed or who have another amount to divide;
  // `changed` is from StateEditor::TakeChangedQueues. The first time, everything.
  // O(siblings log siblings) for each parent divided, nothing if nothing changed.
  void Refresh(const ClusterState& state, const std::vector<QueueId>& changed,
               const FairShareParameters& parameters);

  // The queue must have been there at the last Refresh. Valid until the next one.
  const OfQueue& At(QueueId id) const { return queues_.At(id); }
  // Parents divided so far.
  uint64_t divisions() const { return divisions_; }

 private:
  using Depth = uint32_t;
  using Work = std::set<std::pair<Depth, QueueId>>;  // parents before children
  void Include(const ClusterState& state, QueueId id, Work& work) const;
  void Collect(const ClusterState& state, const Queue& queue);
  void Divide(const ClusterState& state, const Queue& parent, Depth depth, Work& work);

  FairShareParameters parameters_;
  bool built_ = false;
  IdMap<QueueId, OfQueue> queues_;
  uint64_t divisions_ = 0;
};

// A fraction of non-negative numbers. 0/0 is 0; anything else by 0 is infinite.
struct Share {
  int64_t part = 0;
  int64_t whole = 1;
};
// Negative, 0 or positive, as a is smaller, equal or larger. Exact.
int Compare(const Share& a, const Share& b);
// The largest of used / of, over the first `kinds` resources.
Share DominantShare(const Resources& used, const Resources& of, size_t kinds = kMaxResourceKinds);
// What it deserves, within its limit, before that is scaled; kMaxAmount and more: without bound.
int64_t PromisedTo(const Queue& queue, ResourceKind kind);
// What use is measured by: max(deserved, fair share), within the limit.
Resources Entitlement(const Queue& queue, const FairShares::OfQueue& share);

// What people are shown of a queue.
struct QueueShares {
  QueueId queue;
  FairShares::OfQueue share;
  Resources allocated;
  Resources borrowed;  // held beyond deserved
  Resources lent;      // deserved, not guaranteed and not used, as far as siblings have borrowed
};
// Of all queues, by id. From `shares` as last refreshed, and the state as it is. O(queues).
std::vector<QueueShares> QueueSharesOf(const ClusterState& state, const FairShares& shares);
// Computed from scratch, for who may only read the state.
FairShares FairSharesOf(const ClusterState& state, const FairShareParameters& parameters);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_FAIR_SHARE_H_
