#include "core/engine/shares/queue_claim.h"

#include <algorithm>
#include <limits>

namespace berth {
namespace {

// How far the queue is below its fair share.
int64_t Missing(const FairShares::OfQueue& share, const Resources& held, size_t kind) {
  return std::max<int64_t>(share.fair_share.amount[kind] - held.amount[kind], 0);
}

}  // namespace

// Missing for each resource; for a queue with children, at least the sum of theirs.
Resources SpareRoom::MissingOf(const Queue& queue) const {
  Resources below;
  for (QueueId child : queue.children) below += MissingOf(state_.queues().At(child));
  if (queue.id == kRootQueue) return below;
  const Resources held = HeldAfterRelease(queue);
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    below.amount[i] = std::max(below.amount[i], Missing(shares_.At(queue.id), held, i));
  }
  return below;
}

const Resources& SpareRoom::Get() {
  if (!room_.has_value()) {
    room_ = state_.free().total() - MissingOf(state_.queues().At(kRootQueue));
  }
  return *room_;
}

// Case 2.
bool StandingClaims::AlongsideDeserved(const Queue& leaf, size_t kind) const {
  if (NamedInDeserved(leaf, kind)) return false;
  const Resources entitled = Entitlement(leaf, shares_.At(leaf.id));
  bool any = false;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (!NamedInDeserved(leaf, i)) continue;
    any |= leaf.claimed.amount[i] > 0;
    if (leaf.claimed.amount[i] > entitled.amount[i]) return false;
  }
  return any;
}

bool StandingClaims::Stand(const Queue& leaf, size_t kind) {
  if (leaf.claimed.amount[kind] <= shares_.At(leaf.id).fair_share.amount[kind]) return true;
  if (AlongsideDeserved(leaf, kind)) return true;
  if (!spoken_for_.has_value()) spoken_for_ = SpokenFor(state_.queues().At(kRootQueue));
  return spoken_for_->amount[kind] <= state_.capacity().amount[kind];
}

// The queue's entitlement, and what those below it claimed beyond theirs.
Resources StandingClaims::SpokenFor(const Queue& queue) const {
  Resources below;
  for (QueueId child : queue.children) below += SpokenFor(state_.queues().At(child));
  if (queue.id == kRootQueue) return below;
  const Resources& share = shares_.At(queue.id).fair_share;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const bool claims = queue.children.empty() && !AlongsideDeserved(queue, i);
    const int64_t least =
        claims ? std::max(below.amount[i], queue.claimed.amount[i]) : below.amount[i];
    below.amount[i] = std::max(least, share.amount[i]);
  }
  return below;
}

bool NamedInDeserved(const Queue& queue, size_t kind) {
  return queue.deserved_bound.amount[kind] != std::numeric_limits<int64_t>::max();
}

bool WithinDeserved(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                    const Resources& request) {
  bool any = false;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (!NamedInDeserved(queue, i)) continue;
    if (request.amount[i] > 0) any = true;
    if (held.amount[i] + request.amount[i] > share.deserved.amount[i]) return false;
  }
  return any;
}

QueueClaim ClaimOf(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                   const Resources& request, SpareRoom& spare) {
  const bool deserved = WithinDeserved(queue, share, held, request);
  QueueClaim claim;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] <= 0) continue;
    const bool within = held.amount[i] + request.amount[i] <= share.fair_share.amount[i];
    if (within || (deserved && !NamedInDeserved(queue, i))) {
      claim.claimed.set(i);
    } else if (request.amount[i] <= spare.Get().amount[i] + Missing(share, held, i)) {
      claim.borrowed.set(i);
    } else {
      claim.refused.set(i);
    }
  }
  return claim;
}

}  // namespace berth
