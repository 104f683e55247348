// What a queue may claim for a pending job: which of the requested resources other queues owe it,
// and which it may only borrow. Each resource counts separately.
//
//   claimed   with the job, the queue stays within its fair share of it;
//             or the queue's `deserved` does not name it, and the queue stays within everything
//             that its `deserved` names: memory and CPU come along with deserved GPUs
//   borrowed  neither, but the requested amount is idle, beyond all that other queues are entitled
//             to and do not hold: no queue has to give it, now or later. (Otherwise two queues
//             could alternate: one takes GPUs and borrows CPU, the other the reverse.)
//   refused   otherwise; the queue then claims nothing for the job
//
//   a: deserved 4 GPUs, no weight; b holds 4 GPUs and 32 of 64 cores. A job of a for 4 GPUs and 8
//   cores claims both, although a's fair share of cores is 0.
#ifndef BERTH_CORE_ENGINE_SHARES_QUEUE_CLAIM_H_
#define BERTH_CORE_ENGINE_SHARES_QUEUE_CLAIM_H_

#include <bitset>
#include <optional>

#include "core/engine/shares/fair_share.h"
#include "core/model/cluster_state.h"

namespace berth {

using KindSet = std::bitset<kMaxResourceKinds>;

struct QueueClaim {
  KindSet claimed;
  KindSet borrowed;
  KindSet refused;
  bool Lawful() const { return refused.none() && claimed.any(); }
};

// The queue's `deserved` names the resource.
bool NamedInDeserved(const Queue& queue, size_t kind);

// With the request, a queue that holds `held` stays within everything that its `deserved` names,
// and the request includes something that it names.
bool WithinDeserved(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                    const Resources& request);

// What is free in the cluster beyond what queues lack to their fair share. Computed on first use,
// from the state at that time: O(queues).
class SpareRoom {
 public:
  SpareRoom(const ClusterState& state, const FairShares& shares) : state_(state), shares_(shares) {}
  const Resources& Get();

 private:
  Resources MissingOf(const Queue& queue) const;

  const ClusterState& state_;
  const FairShares& shares_;
  std::optional<Resources> room_;
};

// Which claims are valid: resources that were reclaimed for a queue (Task::claimed) are not
// reclaimed back for the sake of a resource of which its claims
//   1. are within its fair share; or
//   2. come along with what it deserves: `deserved` does not name the resource, and the claims are
//      within the queue's entitlement to everything that it does name; or
//   3. leave enough for all: the cluster has what all queues are entitled to, and what they claimed
//      beyond that.
// A lawful claim (ClaimOf) is at once valid for each resource of its job, and so are the earlier
// claims of its queue. It becomes invalid only when shares, demand or capacity change.
class StandingClaims {
 public:
  StandingClaims(const ClusterState& state, const FairShares& shares)
      : state_(state), shares_(shares) {}
  bool Stand(const Queue& leaf, size_t kind);

 private:
  bool AlongsideDeserved(const Queue& leaf, size_t kind) const;
  Resources SpokenFor(const Queue& queue) const;

  const ClusterState& state_;
  const FairShares& shares_;
  std::optional<Resources> spoken_for_;  // 3; computed on first use: O(queues)
};

// `held`: what the queue holds without the job.
QueueClaim ClaimOf(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                   const Resources& request, SpareRoom& spare);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SHARES_QUEUE_CLAIM_H_
