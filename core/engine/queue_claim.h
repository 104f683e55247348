// What a queue may claim for a job that waits: which of the resources that the job asks for others
// owe it, and which it may only borrow. Each resource counts on its own.
//
//   claimed   with the job, the queue stays within its fair share of it;
//             or the queue's `deserved` does not name it, and the queue stays within all that its
//             `deserved` does name: memory and CPU come along with deserved GPUs
//   borrowed  neither, but as much as the job asks for is idle, beside all that others are entitled
//             to and do not hold: nobody has to give it, now or later. (Else two queues could take
//             turns: one takes GPUs and borrows CPU for it, the other takes CPU and borrows GPUs.)
//   refused   otherwise; the queue then claims nothing for the job
//
//   a: deserved 4 GPUs, no weight; b holds 4 GPUs and 32 of 64 cores. A job of a for 4 GPUs and 8
//   cores claims both, although a's fair share of cores is 0.
#ifndef BERTH_CORE_ENGINE_QUEUE_CLAIM_H_
#define BERTH_CORE_ENGINE_QUEUE_CLAIM_H_

#include <bitset>
#include <optional>

#include "core/engine/fair_share.h"
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

// With the request, a queue that holds `held` stays within all that its `deserved` names, and the
// request asks for something that it names.
bool WithinDeserved(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                    const Resources& request);

// What is free in the cluster beside what queues hold less than their fair share. Worked out
// when it is first asked for, as the state is then: O(queues).
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

// Which claims stand: what a queue holds of what was reclaimed for it (Task::claimed) is not
// reclaimed for the sake of a resource of which its claims
//   1. are within its fair share; or
//   2. come along with what it deserves: `deserved` does not name the resource, and the claims are
//      within what the queue is entitled to of all that it does name; or
//   3. leave enough for everybody: what all queues are entitled to, and what they claimed beyond
//      that, is there.
// Every claim that is lawful (ClaimOf) stands for each resource of its job at once, and so do the
// earlier ones of its queue. It falls only once shares, demand or capacity have changed.
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
  std::optional<Resources> spoken_for_;  // 3; worked out when first asked for: O(queues)
};

// `held`: what the queue holds without the job.
QueueClaim ClaimOf(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                   const Resources& request, SpareRoom& spare);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_QUEUE_CLAIM_H_
