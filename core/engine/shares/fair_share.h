// FairShares: what each queue is entitled to now.
//
// Each resource separately, in its integer unit, top down: siblings divide the amount A that their
// parent got (the root: the capacity of the ready nodes, including cordoned ones, as they come
// back).
//   1. Each gets min(deserved, demand, limit), but at least its guarantee. Demand is what the
//      subtree holds and what its pending jobs request (OfQueue::demand). If the sum exceeds A:
//      guarantees first, then the rest of A in proportion to what each deserves beyond its
//      guarantee. Queues that deserve without bound (kMaxAmount) come after those that deserve a
//      number: they divide the rest in equal parts.
//   2. The rest goes to queues with unmet demand: highest priority first, in proportion to weight
//      among equals, up to demand and limit.
// "In proportion" is done by Fill: a queue whose part exceeds what it can take gets that, and the
// rest is divided again among the others. At the end parts are rounded down, and the remainder goes
// one unit each by queue priority, then largest fraction, then older queue. (Step 2 divides one
// priority at a time.)
//
// Example: A = 10 GPUs; a: deserved 4, demand 9; b: deserved 4, demand 1; c: demand 9. Step 1 gives
// a 4, b 1, c 0. The 5 left are split 2.5 : 2.5, so a gets 2, c gets 2, and the odd one goes to a,
// which is older: 7, 1, 2.
//
// The past. With half_life set, the weight w of step 2 is replaced by
//     max(0, w' + usage_weight * (w' - u)),   w' = w / sum of siblings' w,   u = usage / A,
// in 1/2^32, where usage is the decayed average of what the queue held (Queue::usage). This is the
// time-based fair share of NVIDIA's KAI-Scheduler. A queue with any weight gets at least 1/2^32, so
// that nothing stays idle because every queue has used too much.
//
// `deserved`, as shown and as used by reclaim and order: what siblings deserve may add up to more
// than there is for them (the capacity, what their parent deserves if that is set, or its limit).
// Then all are scaled down to fit, guarantees kept, and deserved_scaled is set, for a warning. A
// queue that deserves without bound was promised no number, so it does not count as scaled. Demand
// plays no part in this.
#ifndef BERTH_CORE_ENGINE_SHARES_FAIR_SHARE_H_
#define BERTH_CORE_ENGINE_SHARES_FAIR_SHARE_H_

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/id_map.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

// One claimant of a divided amount.
struct Claim {
  int64_t cap = 0;       // takes at most this; <= 0: nothing
  int64_t weight = 0;    // <= 0: nothing
  int64_t got = 0;       // is increased
  int32_t priority = 0;  // for the remainder: higher first
};
// Divides at most `amount` among the claims, older first, in proportion to weight as described
// above. Returns what was given: less than `amount` only if every claim with weight has its cap.
// Weights add up to less than 2^60. Parts are whole units, except caps and the last part.
// O(n log n).
int64_t Fill(int64_t amount, std::vector<Claim>& claims, int64_t unit = 1);

class FairShares {
 public:
  struct OfQueue {
    Resources demand;  // allocated, and pending demand that could be placed at some time: of jobs
                       // not on hold, not in closed queues, and able to fit
    Resources fair_share;
    Resources guarantee;  // its own, or the sum of its children's if that is more
    Resources deserved;   // scaled if necessary; at least the guarantee
    bool deserved_scaled = false;
    Resources divisible;  // the amount that limits its children's deserved
    bool operator==(const OfQueue&) const = default;
  };

  // Divides again for parents with changed children or a changed amount to divide; `changed` is
  // from StateEditor::TakeChangedQueues. The first time, everything. O(siblings log siblings) for
  // each parent divided; nothing if nothing changed.
  void Refresh(const ClusterState& state, const std::vector<QueueId>& changed,
               const FairShareParameters& parameters);

  // The queue must have existed at the last Refresh. Valid until the next one.
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
// Negative, 0 or positive if a is smaller, equal or larger. Exact.
int Compare(const Share& a, const Share& b);
// The largest of used / of, over the first `kinds` resources.
Share DominantShare(const Resources& used, const Resources& of, size_t kinds = kMaxResourceKinds);
// What it deserves, within its limit, before scaling; kMaxAmount and more: without bound.
int64_t PromisedTo(const Queue& queue, ResourceKind kind);
// The denominator of its use: max(deserved, fair share), within the limit.
Resources Entitlement(const Queue& queue, const FairShares::OfQueue& share);

// A queue's shares as shown to people.
struct QueueShares {
  QueueId queue;
  FairShares::OfQueue share;
  Resources allocated;
  Resources borrowed;  // held beyond deserved
  Resources lent;      // deserved, not guaranteed and not used, up to what siblings have borrowed
};
// For all queues, by id. From `shares` as last refreshed and the current state. O(queues).
std::vector<QueueShares> QueueSharesOf(const ClusterState& state, const FairShares& shares);
// Computed from scratch, for callers that may only read the state.
FairShares FairSharesOf(const ClusterState& state, const FairShareParameters& parameters);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SHARES_FAIR_SHARE_H_
